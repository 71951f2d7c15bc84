"""What pip calls to build the package (PEP 517): a wheel is a zip file of the modules and three texts. No setuptools, no
compiler, no network. With KEDGE_LIBRARY set, the library goes into the wheel, which is then of this kind of machine."""
import base64
import hashlib
import os
import re
import sysconfig
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def value(key):
    return re.search(rf'^{key} = "(.*)"$', PROJECT, flags=re.M).group(1)


NAME, VERSION = value("name"), value("version")
INFO = f"{NAME}-{VERSION}.dist-info"


def metadata():
    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nSummary: {value('description')}\n"
            f"Requires-Python: {value('requires-python')}\nLicense: Apache-2.0\nProvides-Extra: numpy\n"
            "Requires-Dist: numpy; extra == 'numpy'\n")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    library = os.environ.get("KEDGE_LIBRARY")
    platform = re.sub("[-.]", "_", sysconfig.get_platform()) if library else "any"
    tag = f"py3-none-{platform}"
    files = {f"{NAME}/{path.name}": path.read_bytes() for path in sorted((ROOT / NAME).glob("*.py"))}
    if library:
        files[f"{NAME}/libkedge-client.so"] = Path(library).read_bytes()
    files[f"{INFO}/METADATA"] = metadata().encode()
    files[f"{INFO}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: kedge\nRoot-Is-Purelib: {'false' if library else 'true'}\n"
                              f"Tag: {tag}\n").encode()
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}\n"
                     for name, data in files.items())
    files[f"{INFO}/RECORD"] = (record + f"{INFO}/RECORD,,\n").encode()
    out = f"{NAME}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), data)
    return out


def build_sdist(sdist_directory, config_settings=None):
    out = f"{NAME}-{VERSION}.tar.gz"
    with tarfile.open(Path(sdist_directory) / out, "w:gz") as sdist:
        for path in (ROOT / "pyproject.toml", ROOT / "build_wheel.py", *sorted((ROOT / NAME).glob("*.py"))):
            sdist.add(path, f"{NAME}-{VERSION}/{path.relative_to(ROOT)}")
    return out
