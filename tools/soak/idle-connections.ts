import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { KeepAliveConnection, postBytes } from '../harness/keep-alive-connection.ts'
import type { SignalboxServer } from '../harness/signalbox-server.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'
import { quantile } from '../bench/statistics.ts'

/** What an idle client did before it stopped: nothing, half a head of a request, or a whole request. */
export const IDLE_KINDS = ['silent', 'half a head', 'used once'] as const

type IdleKind = (typeof IDLE_KINDS)[number]

/** How long after its last byte the server closes each, in seconds: the time for a head, and for the next request. */
const CLOSED_AFTER_S: Readonly<Record<IdleKind, number>> = { silent: 15, 'half a head': 15, 'used once': 75 }

/** How much later a busy server may be. It looks every 5 seconds. */
const LATE_S = 15

/** So many are opened at once, so that no backlog overflows. */
const PORTION = 200

export interface IdleOptions {
  readonly connections: number
  /** Whether to wait until the server has closed them all, a minute and a half. */
  readonly untilClosed: boolean
  readonly log: (line: string) => void
}

export interface IdleReport {
  readonly connections: number
  /** Connections that could not be made. */
  readonly lost: number
  readonly openSeconds: number
  /** Memory of the server for each connection. */
  readonly kib: number
  /** Of calls that others make meanwhile, each on a new connection. */
  readonly callMs: { readonly p50: number; readonly p99: number; readonly max: number }
  /** By kind, how old the first and the last were when the server closed them; not all did where that was not waited for. */
  readonly closedAfter: Readonly<Partial<Record<IdleKind, { readonly first: number; readonly last: number }>>>
  readonly open: number
  readonly problems: readonly string[]
}

class IdleConnection {
  readonly kind: IdleKind
  readonly opened: Promise<boolean>
  readonly #socket: Socket
  #since = performance.now()
  /** Seconds after its last byte at which the server closed it. */
  closedAfter: number | undefined

  constructor(base: string, index: number) {
    this.kind = IDLE_KINDS[index % IDLE_KINDS.length] ?? 'silent'
    const { hostname: host, port } = new URL(base)
    // An address has 28,000 ports for clients, and others need some.
    const socket = connect({ host, port: Number(port), localAddress: `127.0.0.${2 + (index % 8)}` })
    this.#socket = socket
    this.opened = new Promise((resolve) => {
      socket.once('error', () => resolve(false))
      socket.once('close', () => {
        this.closedAfter = (performance.now() - this.#since) / 1000
        resolve(false)
      })
      socket.once('connect', () => {
        this.#since = performance.now()
        if (this.kind === 'half a head') socket.write('POST /mcp HTTP/1.1\r\nHost: x\r\n')
        if (this.kind === 'used once') socket.write('GET /ping HTTP/1.1\r\nHost: x\r\n\r\n')
        else resolve(true)
      })
      socket.once('data', () => {
        if (this.kind === 'used once') this.#since = performance.now()
        resolve(true)
      })
      socket.resume()
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** How long others wait for an answer, each on a new connection, in milliseconds. */
async function callTimes(http: string, calls: number): Promise<number[]> {
  const request = postBytes(`${http}/mcp`, '{"jsonrpc":"2.0","id":1,"method":"ping"}')
  const times: number[] = []
  for (let i = 0; i < calls; i++) {
    const begin = performance.now()
    const connection = await KeepAliveConnection.open(http)
    const { status } = await connection.request(request)
    connection.close()
    if (status !== 200) throw new Error(`a call was answered with ${status}`)
    times.push(performance.now() - begin)
  }
  return times
}

async function openIdle(http: string, count: number): Promise<{ idle: IdleConnection[]; lost: number }> {
  const idle: IdleConnection[] = []
  let lost = 0
  while (idle.length < count) {
    const portion = Array.from(
      { length: Math.min(PORTION, count - idle.length) },
      (_, i) => new IdleConnection(http, idle.length + i),
    )
    idle.push(...portion)
    for (const opened of await Promise.all(portion.map((one) => one.opened))) if (!opened) lost++
  }
  return { idle, lost }
}

async function untilClosed(idle: readonly IdleConnection[], log: (line: string) => void): Promise<void> {
  const end = performance.now() + (Math.max(...Object.values(CLOSED_AFTER_S)) + LATE_S) * 1000
  for (let ticks = 0; performance.now() < end; ticks++) {
    const left = idle.filter(({ closedAfter }) => closedAfter === undefined).length
    if (left === 0) return
    if (ticks % 20 === 0) log(`${left} connections are open`)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

function closings(idle: readonly IdleConnection[]): IdleReport['closedAfter'] {
  const found: Partial<Record<IdleKind, { first: number; last: number }>> = {}
  for (const { kind, closedAfter } of idle) {
    if (closedAfter === undefined) continue
    const known = (found[kind] ??= { first: closedAfter, last: closedAfter })
    known.first = Math.min(known.first, closedAfter)
    known.last = Math.max(known.last, closedAfter)
  }
  return found
}

function problemsOf(lost: number, open: number, closedAfter: IdleReport['closedAfter']): string[] {
  const problems: string[] = []
  if (lost > 0) problems.push(`${lost} connections could not be made`)
  if (open > 0) problems.push(`${open} connections were not closed`)
  for (const kind of IDLE_KINDS) {
    const { first, last } = closedAfter[kind] ?? {}
    if (first === undefined || last === undefined) continue
    // The clock of the client begins a little after that of the server.
    if (first < CLOSED_AFTER_S[kind] - 1) problems.push(`${kind}: one was closed after ${first.toFixed(1)} s already`)
    if (last > CLOSED_AFTER_S[kind] + LATE_S) problems.push(`${kind}: one was closed after ${last.toFixed(1)} s only`)
  }
  return problems
}

async function measure(server: SignalboxServer, options: IdleOptions): Promise<IdleReport> {
  await callTimes(server.http, 300)
  const before = await server.process.rssBytes()
  const begin = performance.now()
  const { idle, lost } = await openIdle(server.http, options.connections)
  const openSeconds = (performance.now() - begin) / 1000
  const kib = ((await server.process.rssBytes()) - before) / idle.length / 1024
  const times = await callTimes(server.http, 300)
  if (options.untilClosed) await untilClosed(idle, options.log)
  const closedAfter = closings(idle)
  const open = options.untilClosed ? idle.filter((one) => one.closedAfter === undefined).length : 0
  for (const one of idle) one.close()
  return {
    connections: idle.length,
    lost,
    openSeconds,
    kib,
    callMs: { p50: quantile(times, 0.5), p99: quantile(times, 0.99), max: Math.max(...times) },
    closedAfter,
    open,
    problems: problemsOf(lost, open, closedAfter),
  }
}

/** Thousands of connections to the real server that do nothing, while others make calls. */
export async function idleConnections(options: IdleOptions): Promise<IdleReport> {
  await using folder = await TemporaryFolder.create('idle-connections')
  const env = { NODE_OPTIONS: '--expose-gc' }
  await using server = await startSignalbox({ storePath: folder.join('store'), env })
  // Awaited here: the server is gone when this returns.
  return await measure(server, options)
}
