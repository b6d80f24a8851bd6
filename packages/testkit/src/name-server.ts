import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'

/** The answer to a question: addresses, of which those of the asked family are sent, an error, or none at all. */
export type NameAnswer =
  | { readonly addresses: readonly string[]; readonly ttl?: number }
  | 'absent'
  | 'failing'
  | 'silent'

/** A name server on loopback. */
export interface NameServer extends AsyncDisposable {
  /** The address with the port. */
  readonly address: string
  /** The questions: `agent.example 4`. */
  readonly asked: string[]
  /** Answers a question; replace it to answer otherwise. */
  answer: (name: string, family: 4 | 6) => NameAnswer | Promise<NameAnswer>
}

const HEADER_BYTES = 12
const ADDRESS_TYPES: Readonly<Record<number, 4 | 6>> = { 1: 4, 28: 6 }
const CODES = { absent: 3, failing: 2 } as const

/** Opens a name server (RFC 1035, over UDP). Dispose of it at the end. */
export async function openNameServer(
  answer: NameServer['answer'],
  { host = '127.0.0.1', port = 0 } = {},
): Promise<NameServer> {
  const socket = createSocket('udp4')
  let open = true
  socket.on('message', (query, from) => {
    const end = questionEnd(query)
    const family = ADDRESS_TYPES[query.readUInt16BE(end - 4)]
    if (family === undefined) return
    const name = nameOf(query)
    server.asked.push(`${name} ${family}`)
    void Promise.resolve(server.answer(name, family)).then((given) => {
      if (given !== 'silent' && open) socket.send(reply(query.subarray(0, end), family, given), from.port, from.address)
    })
  })
  socket.bind(port, host)
  await once(socket, 'listening')
  const server: NameServer = {
    address: `${host}:${socket.address().port}`,
    asked: [],
    answer,
    async [Symbol.asyncDispose]() {
      open = false
      await new Promise<void>((resolve) => socket.close(() => resolve()))
    },
  }
  return server
}

function questionEnd(query: Buffer): number {
  let at = HEADER_BYTES
  while (query.readUInt8(at) > 0) at += query.readUInt8(at) + 1
  return at + 5
}

function nameOf(query: Buffer): string {
  const labels: string[] = []
  for (let at = HEADER_BYTES; query.readUInt8(at) > 0; at += query.readUInt8(at) + 1) {
    labels.push(query.toString('latin1', at + 1, at + 1 + query.readUInt8(at)))
  }
  return labels.join('.').toLowerCase()
}

function reply(question: Buffer, family: 4 | 6, answer: Exclude<NameAnswer, 'silent'>): Buffer {
  const found = typeof answer === 'string' ? [] : answer.addresses.filter((one) => isIPv6(one) === (family === 6))
  const ttl = typeof answer === 'string' ? 0 : (answer.ttl ?? 60)
  const head = Buffer.from(question)
  head.writeUInt16BE(0x8180 | (typeof answer === 'string' ? CODES[answer] : 0), 2)
  head.writeUInt16BE(found.length, 6)
  // No authorities, no additional records.
  head.writeUInt32BE(0, 8)
  const records = found.map((address) => {
    const bytes = bytesOf(address)
    const record = Buffer.alloc(12)
    // The name of the question.
    record.writeUInt16BE(0xc00c, 0)
    record.writeUInt16BE(family === 4 ? 1 : 28, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt32BE(ttl, 6)
    record.writeUInt16BE(bytes.byteLength, 10)
    return Buffer.concat([record, bytes])
  })
  return Buffer.concat([head, ...records])
}

/** The bytes of an address; IPv6 with at most one `::`. */
function bytesOf(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail = ''] = address.split('::', 2)
  const [before, after] = [head, tail].map((part) => part.split(':').filter((group) => group !== ''))
  const missing = 8 - (before?.length ?? 0) - (after?.length ?? 0)
  const groups = [...(before ?? []), ...Array.from({ length: missing }, () => '0'), ...(after ?? [])]
  return Buffer.from(groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]))
}
