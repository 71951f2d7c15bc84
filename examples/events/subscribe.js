// Prints the events of a coordinator:  node subscribe.js URL [TOPIC]...
//
// Without any library: the protocol (SP, as nng speaks it) is 8 bytes each way, 0 'S' 'P' 0, PUB 32 or SUB 33, two zeros;
// then messages, each with its length in 64 bits before it, over ipc after a byte 1. What a subscriber wants it chooses
// itself. A message is a topic, a blank and a line of JSON (docs/events.md). What was lost is said on standard error.
"use strict";

const net = require("net");

const SILENCE_MS = 4000; // a stream says every second that it lives
const AGAIN_MS = 500;
const MESSAGE_MAX = 8192;
const SUBSCRIBER = Buffer.from([0, 0x53, 0x50, 0, 0, 33, 0, 0]);
const PUBLISHER = Buffer.from([0, 0x53, 0x50, 0, 0, 32, 0, 0]);

const [url, ...topics] = process.argv.slice(2);
const match = /^(ipc):\/\/(\/.+)$|^(tcp):\/\/(.+):(\d+)$/.exec(url || "");
if (!match) {
    console.error("Usage: node subscribe.js ipc:///PATH|tcp://HOST:PORT [TOPIC]...");
    process.exit(2);
}
const isIpc = match[1] === "ipc";
const head = isIpc ? 9 : 8;
let last = 0;

function take(message) {
    const blank = message.indexOf(" ");
    const topic = message.subarray(0, blank).toString();
    const line = message.subarray(blank + 1).toString();
    const event = JSON.parse(line);
    const seq = (event.alive || event).seq;
    const lostTo = event.alive ? seq : seq - 1;
    if (topics.length === 0 && last > 0 && lostTo > last) {
        console.error(`gap ${last + 1} ${lostTo}`);
    }
    last = Math.max(last, seq);
    if (!event.alive && (topics.length === 0 || topics.some((t) => topic.startsWith(t)))) {
        process.stdout.write(line + "\n");
    }
}

// Takes what is whole off the bytes that came, and gives back the rest; null: the other side speaks something else.
function takeAll(bytes) {
    while (bytes.length >= head) {
        const length = bytes.readBigUInt64BE(head - 8);
        if ((isIpc && bytes[0] !== 1) || length > BigInt(MESSAGE_MAX)) {
            return null;
        }
        if (bytes.length < head + Number(length)) {
            break;
        }
        take(bytes.subarray(head, head + Number(length)));
        bytes = bytes.subarray(head + Number(length));
    }
    return bytes;
}

function connect() {
    let bytes = Buffer.alloc(0);
    let greeted = false;
    const socket = isIpc ? net.connect(match[2]) : net.connect(Number(match[5]), match[4]);
    socket.setTimeout(SILENCE_MS, () => {
        console.error("silence");
        socket.destroy();
    });
    socket.on("connect", () => socket.write(SUBSCRIBER));
    socket.on("data", (data) => {
        bytes = Buffer.concat([bytes, data]);
        if (!greeted && bytes.length >= PUBLISHER.length) {
            greeted = bytes.subarray(0, PUBLISHER.length).equals(PUBLISHER);
            bytes = greeted ? bytes.subarray(PUBLISHER.length) : null;
        }
        bytes = greeted && bytes ? takeAll(bytes) : bytes;
        if (bytes === null) {
            console.error("this is no stream of events");
            process.exit(1);
        }
    });
    socket.on("error", () => {}); // "close" follows
    socket.on("close", () => setTimeout(connect, AGAIN_MS));
}

connect();
