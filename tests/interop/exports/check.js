// Checks an exported folder with programs that are not Kedge's.
//   node check.js EXPORT WORK            all files; writes WORK/envelopes/N/{pae,sig,key.pem} and WORK/sums
//   node check.js --model MODEL EXPORT   one model folder against its model.sig
'use strict';
const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { bundleFromJSON } = require('@sigstore/bundle');
const { Verifier, toSignedEntity, toTrustMaterial } = require('@sigstore/verify');

const sha256 = (bytes) => crypto.createHash('sha256').update(bytes).digest();
const hex = (bytes) => sha256(bytes).toString('hex');
const read = (...parts) => fs.readFileSync(path.join(...parts));
const json = (...parts) => JSON.parse(read(...parts));
const noRoot = { certificateAuthorities: [], timestampAuthorities: [], tlogs: [], ctlogs: [] };

// ---- model.sig ----
function checkModel(folder, pem) {
  const bundle = bundleFromJSON(json(folder, 'model.sig'));
  const key = crypto.createPublicKey(pem);
  const trust = toTrustMaterial(noRoot, (hint) => {
    assert.equal(hint, hex(pem), 'the hint is the SHA-256 of the PEM text');
    return { publicKey: key, validFor: () => true };
  });
  const verifier = new Verifier(trust, { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 });
  verifier.verify(toSignedEntity(bundle));

  const statement = JSON.parse(bundle.content.dsseEnvelope.payload);
  assert.equal(statement.predicateType, 'https://model_signing/signature/v1.0');
  assert.deepEqual(Object.keys(statement.predicate).sort(), ['resources', 'serialization']);
  const { resources } = statement.predicate;
  const names = fs.readdirSync(folder).filter((name) => name !== 'model.sig').sort();
  assert.deepEqual(resources.map((r) => r.name), names);
  for (const r of resources) {
    assert.equal(hex(read(folder, r.name)), r.digest, `${r.name} is what was signed`);
  }
  const root = hex(Buffer.concat(resources.map((r) => Buffer.from(r.digest, 'hex'))));
  assert.equal(statement.subject[0].digest.sha256, root);
  return names.length;
}

// ---- CycloneDX ----
function checkInventory(folder) {
  const Ajv = require('ajv');
  const formats = require('ajv-formats');
  const place = path.join(path.dirname(require.resolve('@cyclonedx/cyclonedx-library/package.json')), 'res/schema');
  const ajv = new Ajv({ strict: false, allErrors: true });
  formats(ajv);
  // formats that ajv-formats has not: every name and reference here is ASCII, for which they are these
  ajv.addFormat('iri-reference', ajv.formats['uri-reference']);
  ajv.addFormat('idn-email', ajv.formats.email);
  for (const name of ['spdx', 'jsf-0.82', 'cryptography-defs']) {
    const file = `${name}.SNAPSHOT.schema.json`;
    ajv.addSchema(json(place, file), `http://cyclonedx.org/schema/${file}`);
  }
  const validate = ajv.compile(json(place, 'bom-1.6.SNAPSHOT.schema.json'));
  const bom = json(folder, 'bom.cdx.json');
  assert.ok(validate(bom), JSON.stringify(validate.errors, null, 1));
  const models = bom.components.filter((c) => c.type === 'machine-learning-model');
  assert.ok(models.length > 0 && models.every((m) => m.modelCard && m.pedigree.ancestors.length === 1));
  const refs = new Set(bom.components.map((c) => c['bom-ref']));
  assert.equal(refs.size, bom.components.length);
  for (const m of models) {
    assert.equal(m.hashes[0].content, hex(read(folder, 'models', m.name.replace('.safetensors', ''), m.name)));
    assert.ok(m.modelCard.modelParameters.datasets.every((d) => refs.has(d.ref)));
    for (const r of m.externalReferences) {
      assert.ok(fs.existsSync(path.join(folder, r.url)), r.url);
    }
    assert.ok(m.modelCard.quantitativeAnalysis.performanceMetrics.length === 2);
  }
  bom.components[0].type = 'model'; // the schema must be able to say no
  assert.ok(!validate(bom));
  return models.length;
}

// ---- envelopes ----
function pae(type, body) {
  return Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${body.length} `), body]);
}

function envelopes(folder) {
  const files = fs.readdirSync(folder).filter((name) => /\.intoto\.jsonl?$/.test(name));
  const lines = files.flatMap((name) => read(folder, name).toString().split('\n').filter(Boolean));
  const entries = fs.readdirSync(path.join(folder, 'entries')).filter((name) => name.endsWith('.json'));
  return { lineage: lines.map((l) => JSON.parse(l)), entries: entries.map((name) => json(folder, 'entries', name)) };
}

function writeEnvelopes(folder, work) {
  const keys = new Map();
  for (const line of read(folder, 'keys.jsonl').toString().split('\n').filter(Boolean)) {
    const { public_key: key } = JSON.parse(line);
    if (key) {
      const raw = Buffer.from(key, 'hex');
      const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), raw]); // RFC 8410
      const pem = crypto.createPublicKey({ key: der, format: 'der', type: 'spki' });
      keys.set(hex(raw), pem.export({ type: 'spki', format: 'pem' }));
    }
  }
  const { lineage, entries } = envelopes(folder);
  let n = 0;
  for (const e of [...lineage, ...entries]) {
    assert.equal(e.payloadType, 'application/vnd.in-toto+json');
    for (const s of e.signatures) {
      assert.ok(keys.has(s.keyid), `the key ${s.keyid} is in keys.jsonl`);
      const dir = path.join(work, 'envelopes', String(n++));
      fs.mkdirSync(dir, { recursive: true });
      fs.writeFileSync(path.join(dir, 'pae'), pae(e.payloadType, Buffer.from(e.payload, 'base64')));
      fs.writeFileSync(path.join(dir, 'sig'), Buffer.from(s.sig, 'base64'));
      fs.writeFileSync(path.join(dir, 'key.pem'), keys.get(s.keyid));
    }
  }
  return { lineage, entries, n };
}

// ---- in-toto, SLSA, SVR: the fields that the specifications require ----
const digest = /^[0-9a-f]{64}$/;
function checkStatement(s) {
  assert.equal(s._type, 'https://in-toto.io/Statement/v1');
  assert.ok(s.subject.length > 0 && s.subject.every((x) => x.name && digest.test(x.digest.sha256)));
  assert.equal(new Set(s.subject.map((x) => x.name)).size, s.subject.length);
  assert.ok(URL.canParse(s.predicateType) && s.predicate);
}

function checkSlsa({ buildDefinition: d, runDetails: r }) {
  assert.ok(URL.canParse(d.buildType) && URL.canParse(r.builder.id));
  const external = Object.keys(d.externalParameters);
  assert.ok(external.length > 0);
  for (const name of Object.keys(d.internalParameters ?? {})) {
    assert.ok(!external.includes(name), `${name} is in both parameter objects`);
  }
  for (const x of [...d.resolvedDependencies, ...r.byproducts]) {
    assert.ok(digest.test(x.digest.sha256) && (x.uri === undefined || URL.canParse(x.uri)), JSON.stringify(x));
  }
  assert.ok(URL.canParse(r.metadata.invocationId));
}

function checkStatements(lineage, entries) {
  const statements = lineage.map((e) => JSON.parse(Buffer.from(e.payload, 'base64')));
  statements.forEach(checkStatement);
  const of = (type) => statements.filter((s) => s.predicateType === type);
  const slsa = of('https://slsa.dev/provenance/v1');
  slsa.forEach((s) => checkSlsa(s.predicate));
  const updates = new Set(of('https://kedge.dev/update/v1').map((s) => s.subject[0].digest.sha256));
  const used = slsa.flatMap((s) => s.predicate.buildDefinition.resolvedDependencies)
    .filter((x) => x.name.startsWith('update of '));
  assert.ok(used.length > 0 && used.every((x) => updates.has(x.digest.sha256)), 'every update has its statement');
  // the chain of models: what a round or release builds on was made by another, or is a first model
  const made = new Set(slsa.flatMap((s) => s.subject.map((x) => x.digest.sha256)));
  const first = new Set(of('https://kedge.dev/job-opened/v1').map((s) => s.predicate.initial_model));
  for (const s of slsa) {
    for (const x of s.predicate.buildDefinition.resolvedDependencies) {
      if (/before-round|first-model|\/round-/.test(x.name)) {
        assert.ok(made.has(x.digest.sha256) || first.has(x.digest.sha256), x.name);
      }
    }
  }
  const svr = of('https://in-toto.io/attestation/svr/v0.2');
  assert.equal(svr.length, 1);
  const { verifier, timeCreated, properties } = svr[0].predicate;
  assert.ok(URL.canParse(verifier.id) && Array.isArray(verifier.policies));
  assert.ok(!Number.isNaN(Date.parse(timeCreated)) && properties.length > 0);
  const bytes = new Set(lineage.map((e) => JSON.stringify(e)));
  assert.ok(entries.every((e) => bytes.has(JSON.stringify(e))), 'every entry is in the lineage');
  return { slsa: slsa.length, used: used.length };
}

// ---- proofs: RFC 9162, 2.1.3.2 ----
function rootOf(leaf, index, size, hashes) {
  let fn = BigInt(index), sn = BigInt(size) - 1n, r = leaf;
  for (const p of hashes) {
    assert.ok(sn > 0n);
    if ((fn & 1n) === 1n || fn === sn) {
      r = sha256(Buffer.concat([Buffer.of(1), p, r]));
      while ((fn & 1n) === 0n && fn !== 0n) {
        fn >>= 1n;
        sn >>= 1n;
      }
    } else {
      r = sha256(Buffer.concat([Buffer.of(1), r, p]));
    }
    fn >>= 1n;
    sn >>= 1n;
  }
  assert.equal(sn, 0n);
  return r;
}

function checkProofs(folder) {
  const names = fs.readdirSync(path.join(folder, 'proofs'));
  for (const name of names) {
    const [head, ...rest] = read(folder, 'proofs', name).toString().split('\n\n');
    const lines = head.split('\n');
    assert.match(lines[0], /^c2sp\.org\/tlog-proof@v1$/);
    const index = /^index (\d+)$/.exec(lines[1])[1];
    const [, size, root] = rest[0].split('\n');
    const base = name.replace('.tlog-proof', '');
    const entry = ['json', 'bin'].map((x) => path.join(folder, 'entries', `${base}.${x}`)).find(fs.existsSync);
    const leaf = sha256(Buffer.concat([Buffer.of(0), read(entry)]));
    const got = rootOf(leaf, index, size, lines.slice(2).map((l) => Buffer.from(l, 'base64')));
    assert.equal(got.toString('base64'), root, name);
  }
  return names.length;
}

function checkManifest(folder, work) {
  const { files } = json(folder, 'manifest.json');
  fs.writeFileSync(path.join(work, 'sums'), files.map((f) => `${f.sha256}  ${f.path}\n`).join(''));
  const all = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((e) => e.isFile())
    .map((e) => path.relative(folder, path.join(e.parentPath ?? e.path, e.name))).sort();
  assert.deepEqual([...files.map((f) => f.path), 'manifest.intoto.json', 'manifest.json'].sort(), all);
  const statement = JSON.parse(Buffer.from(json(folder, 'manifest.intoto.json').payload, 'base64'));
  assert.equal(statement.subject[0].digest.sha256, hex(read(folder, 'manifest.json')));
  return files.length;
}

if (process.argv[2] === '--model') {
  checkModel(process.argv[3], read(process.argv[4], 'keys/models.pub.pem'));
} else {
  const [, , folder, work] = process.argv;
  fs.mkdirSync(work, { recursive: true });
  const pem = read(folder, 'keys/models.pub.pem');
  const models = fs.readdirSync(path.join(folder, 'models'));
  models.forEach((name) => checkModel(path.join(folder, 'models', name), pem));
  console.log(`exports: @sigstore/bundle and @sigstore/verify take ${models.length} model signatures`);
  console.log(`exports: ajv takes bom.cdx.json with ${checkInventory(folder)} models by the schema of CycloneDX 1.6`);
  const { lineage, entries } = writeEnvelopes(folder, work);
  const { slsa, used } = checkStatements(lineage, entries);
  console.log(`exports: ${lineage.length} in-toto statements, ${slsa} of them SLSA provenance with ${used} updates`);
  console.log(`exports: ${checkProofs(folder)} proofs, ${checkManifest(folder, work)} files in the manifest`);
}
