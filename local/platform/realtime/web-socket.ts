// The server's end of a WebSocket (RFC 6455), as far as Realtime needs it: text frames, pings and the close.
import { createHash } from 'node:crypto';
import type http from 'node:http';
import type { Duplex } from 'node:stream';

const keySuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const opcodes = { text: 1, close: 8, ping: 9, pong: 10 };
const mostBytes = 3e6;

export interface WebSocketConnection {
  send(text: string): void;
  close(): void;
}

interface Handlers {
  onText(text: string): void;
  onClose(): void;
}

/** Answers a request to upgrade, and hands on what the client sends. */
export function acceptWebSocket(
  request: http.IncomingMessage,
  socket: Duplex,
  head: Buffer,
  handlers: Handlers,
): WebSocketConnection {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${keySuffix}`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  const write = (opcode: number, payload: Buffer) => {
    if (socket.writable) socket.write(Buffer.concat([headOf(opcode, payload.length), payload]));
  };
  let unread = head;
  let message: Buffer[] = [];
  const read = (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk]);
    if (unread.length > mostBytes) return socket.destroy();
    for (let frame = nextFrame(unread); frame; frame = nextFrame(unread)) {
      unread = frame.rest;
      if (frame.opcode === opcodes.ping) write(opcodes.pong, frame.payload);
      else if (frame.opcode === opcodes.close) {
        write(opcodes.close, frame.payload);
        socket.end();
      } else if (frame.opcode <= opcodes.text) {
        message.push(frame.payload);
        if (!frame.isLast) continue;
        handlers.onText(Buffer.concat(message).toString());
        message = [];
      }
    }
  };
  socket.on('data', read);
  socket.on('error', () => socket.destroy());
  socket.once('close', () => handlers.onClose());
  read(Buffer.alloc(0));
  return {
    send: (text) => write(opcodes.text, Buffer.from(text)),
    close() {
      write(opcodes.close, Buffer.from([3, 232]));
      // A client that does not answer must not keep the gateway from ending.
      socket.end(() => socket.destroy());
    },
  };
}

interface Frame {
  opcode: number;
  isLast: boolean;
  payload: Buffer;
  rest: Buffer;
}

/** Reads the first frame of what has arrived; undefined while a part of it is missing. */
function nextFrame(bytes: Buffer): Frame | undefined {
  if (bytes.length < 2) return undefined;
  const [first = 0, second = 0] = bytes;
  const short = second & 127;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const maskAt = 2 + lengthBytes;
  const start = maskAt + (second & 128 ? 4 : 0);
  if (bytes.length < start) return undefined;
  const length =
    lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  if (bytes.length < start + length) return undefined;
  const mask = bytes.subarray(maskAt, start);
  const payload = Buffer.from(bytes.subarray(start, start + length));
  if (mask.length > 0) for (let at = 0; at < length; at += 1) payload[at] = (payload[at] ?? 0) ^ (mask[at % 4] ?? 0);
  return { opcode: first & 15, isLast: (first & 128) !== 0, payload, rest: bytes.subarray(start + length) };
}

/** Returns the head of an unmasked frame. */
function headOf(opcode: number, length: number): Buffer {
  if (length < 126) return Buffer.from([128 | opcode, length]);
  const head = Buffer.alloc(length < 65_536 ? 4 : 10);
  head[0] = 128 | opcode;
  head[1] = length < 65_536 ? 126 : 127;
  if (length < 65_536) head.writeUInt16BE(length, 2);
  else head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}
