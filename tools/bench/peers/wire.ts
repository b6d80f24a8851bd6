import type { Socket } from 'node:net'
import { connect } from 'node:net'

/** Reads bytes of a server, and returns the number of acknowledgements in them. Throws for an error of the server. */
type Reader = (chunk: Buffer, answer: (bytes: string) => void) => number

/** A connection that sends prepared bytes and counts acknowledgements, so that the load needs little CPU. */
export class AcknowledgedSocket {
  readonly #socket: Socket
  #missing = 0
  #done: { resolve: () => void; reject: (error: Error) => void } | undefined

  private constructor(socket: Socket, read: Reader) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the server closed the connection')))
    socket.on('data', (chunk) => {
      try {
        this.#missing -= read(chunk, (bytes) => socket.write(bytes))
        if (this.#missing <= 0) this.#done?.resolve()
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)))
      }
    })
  }

  static open(port: number, read: Reader): Promise<AcknowledgedSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port })
      socket.once('error', reject)
      socket.once('connect', () => resolve(new AcknowledgedSocket(socket, read)))
    })
  }

  /** Sends bytes; resolves after this number of acknowledgements. One call at a time. */
  send(bytes: Buffer | string, acknowledgements: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#missing = acknowledgements
      this.#done = { resolve, reject }
      this.#socket.write(bytes)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #fail(error: Error): void {
    this.#done?.reject(error)
  }
}

/** Reads lines; `read` returns the number of acknowledgements in one. */
function lines(read: (line: string, answer: (bytes: string) => void) => number): Reader {
  let rest = ''
  return (chunk, answer) => {
    const parts = (rest + chunk.toString('latin1')).split('\r\n')
    rest = parts.pop() ?? ''
    return parts.reduce((sum, line) => sum + read(line, answer), 0)
  }
}

/** Opens a connection to Redis. Every reply to a command is an acknowledgement. */
export function openRedis(port: number): Promise<AcknowledgedSocket> {
  return AcknowledgedSocket.open(
    port,
    lines((line) => {
      if (line.startsWith('-')) throw new Error(`Redis answered ${line}`)
      return /^[$:+]/.test(line) ? 1 : 0
    }),
  )
}

/** Returns a command of Redis in its protocol. */
export function redisCommand(...words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`
}

/** Opens a connection to NATS that subscribes to the inbox. Every answer of JetStream is an acknowledgement. */
export async function openNats(port: number, inbox: string): Promise<AcknowledgedSocket> {
  const socket = await AcknowledgedSocket.open(
    port,
    lines((line, answer) => {
      if (line.startsWith('-ERR') || line.includes('"error"')) throw new Error(`NATS answered ${line}`)
      if (line === 'PING') answer('PONG\r\n')
      return line === 'PONG' || line.startsWith('{') ? 1 : 0
    }),
  )
  await socket.send(`CONNECT {"verbose":false,"pedantic":false}\r\nSUB ${inbox} 1\r\nPING\r\n`, 1)
  return socket
}

const METHOD_FRAME = 1
const HEADER_FRAME = 2
const BODY_FRAME = 3
const FRAME_END = Buffer.from([0xce])
const FRAME_OVERHEAD = 8

/** The methods of AMQP 0-9-1 that are sent or read here, by class and method id. */
const AMQP = {
  startOk: [10, 11],
  tuneOk: [10, 31],
  openConnection: [10, 40],
  closeConnection: [10, 50],
  openChannel: [20, 10],
  closeChannel: [20, 40],
  declareQueue: [50, 10],
  purgeQueue: [50, 30],
  publish: [60, 40],
  ack: [60, 80],
  nack: [60, 120],
  selectConfirms: [85, 10],
} as const

function frame(type: number, channel: number, ...parts: readonly Buffer[]): Buffer {
  const payload = Buffer.concat(parts)
  const head = Buffer.alloc(7)
  head.writeUInt8(type, 0)
  head.writeUInt16BE(channel, 1)
  head.writeUInt32BE(payload.length, 3)
  return Buffer.concat([head, payload, FRAME_END])
}

function method(channel: number, [classId, methodId]: readonly [number, number], ...args: readonly Buffer[]): Buffer {
  return frame(METHOD_FRAME, channel, uint16(classId), uint16(methodId), ...args)
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function shortText(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text, 'latin1')])
}

/** Reads frames of AMQP. A confirm acknowledges messages; every other method of the server is one acknowledgement. */
function amqpFrames(): Reader {
  let rest: Buffer = Buffer.alloc(0)
  /** All messages up to this tag are confirmed, and some later ones. */
  let confirmed = 0
  const later = new Set<number>()
  const confirm = (tag: number, multiple: boolean): number => {
    let count = 0
    if (multiple) {
      while (confirmed < tag) if (!later.delete(++confirmed)) count++
    } else {
      later.add(tag)
      count = 1
    }
    while (later.delete(confirmed + 1)) confirmed++
    return count
  }
  const readMethod = (payload: Buffer): number => {
    const classId = payload.readUInt16BE(0)
    const methodId = payload.readUInt16BE(2)
    const is = ([ofClass, id]: readonly [number, number]): boolean => classId === ofClass && methodId === id
    // Tags have 64 bits; no run sends 2³² messages over one connection.
    if (is(AMQP.ack)) return confirm(payload.readUInt32BE(8), payload.readUInt8(12) === 1)
    if (is(AMQP.nack) || is(AMQP.closeConnection) || is(AMQP.closeChannel)) {
      throw new Error(`RabbitMQ answered ${payload.toString('latin1').replaceAll(/[^ -~]+/g, ' ')}`)
    }
    return 1
  }
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let count = 0
    let at = 0
    while (rest.length - at >= FRAME_OVERHEAD) {
      const end = at + FRAME_OVERHEAD + rest.readUInt32BE(at + 3)
      if (rest.length < end) break
      if (rest.readUInt8(at) === METHOD_FRAME) count += readMethod(rest.subarray(at + 7, end - 1))
      at = end
    }
    rest = rest.subarray(at)
    return count
  }
}

/** Opens a connection to RabbitMQ with a channel that confirms messages, and declares a durable queue. */
export async function openRabbit(port: number, queue: string): Promise<AcknowledgedSocket> {
  const socket = await AcknowledgedSocket.open(port, amqpFrames())
  const noTable = uint32(0)
  const login = '\0guest\0guest'
  await socket.send(Buffer.from('AMQP\0\0\u0009\u0001', 'latin1'), 1)
  await socket.send(
    method(0, AMQP.startOk, noTable, shortText('PLAIN'), uint32(login.length), Buffer.from(login), shortText('en_US')),
    1,
  )
  const channels = uint16(1)
  const frameBytes = uint32(131_072)
  const noHeartbeat = uint16(0)
  await socket.send(
    Buffer.concat([
      method(0, AMQP.tuneOk, channels, frameBytes, noHeartbeat),
      method(0, AMQP.openConnection, shortText('/'), shortText(''), Buffer.from([0])),
    ]),
    1,
  )
  await socket.send(method(1, AMQP.openChannel, shortText('')), 1)
  const durable = Buffer.from([2])
  await socket.send(method(1, AMQP.declareQueue, uint16(0), shortText(queue), durable, noTable), 1)
  await socket.send(method(1, AMQP.selectConfirms, Buffer.from([0])), 1)
  return socket
}

/** Returns the frames of a persistent message for a queue. */
export function rabbitMessage(queue: string, body: Buffer): Buffer {
  const hasDeliveryMode = uint16(0x1000)
  const persistent = Buffer.from([2])
  const [basic] = AMQP.publish
  return Buffer.concat([
    method(1, AMQP.publish, uint16(0), shortText(''), shortText(queue), Buffer.from([0])),
    frame(HEADER_FRAME, 1, uint16(basic), uint16(0), uint32(0), uint32(body.length), hasDeliveryMode, persistent),
    frame(BODY_FRAME, 1, body),
  ])
}

/** Returns the command that removes all messages of a queue. */
export function rabbitPurge(queue: string): Buffer {
  return method(1, AMQP.purgeQueue, uint16(0), shortText(queue), Buffer.from([0]))
}
