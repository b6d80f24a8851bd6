import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { commandLine, conclude, number, print, progress } from '@signalbox/testkit/command-line'
import type { Spread } from '@signalbox/testkit/figures'
import { spreadOf, spreadText } from '@signalbox/testkit/figures'
import { KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

/** Opens idle connections, and more than a server may have. */
export async function main(args: string[]): Promise<void> {
  const { values } = commandLine(
    {
      usage: 'npm run soak -- idle-connections [options]',
      about: `Idle connections to the real server, some after half a head or a whole request: other clients get answers
meanwhile, the memory of each is printed, and the server closes them in time. Then more connections than the server may
have files open. Exits with 1 if a check failed. It takes two minutes; both ends need that many open files
(ulimit -n).`,
    },
    {
      connections: number('N', 'number of connections', 10_000),
      files: number('N', 'open files of the server in the second part', 512),
    },
    args,
  )
  const report = await idleConnections({ connections: values.connections, untilClosed: true, log: progress })
  print(`${report.connections} idle connections, opened in ${report.openSeconds.toFixed(1)} s, ${report.lost} lost`)
  print(`memory of the server: ${report.kib.toFixed(1)} KiB each`)
  print(`calls meanwhile, each on a new connection: ${spreadText(report.callMs)}`)
  for (const kind of IDLE_KINDS) {
    const { first, last } = report.closedAfter[kind] ?? {}
    print(`${kind}: closed after ${first?.toFixed(1) ?? 'never'} to ${last?.toFixed(1) ?? 'never'} s`)
  }
  const limit = await atFileLimit(values.files)
  print(`${limit.tried} connections to a server with ${limit.openFiles} open files: ${limit.refused} refused`)
  for (const line of limit.lines) print(`  ${line}`)
  conclude([...report.problems, ...fileLimitProblems(limit)])
}

/** The last action of an idle client: nothing, half a head of a request, or a whole request. */
export const IDLE_KINDS = ['silent', 'half a head', 'used once'] as const

type IdleKind = (typeof IDLE_KINDS)[number]

/**
 * The time after its last byte at which the server closes each, in seconds: the time-outs for a head and for the next
 * request.
 */
const CLOSED_AFTER_S: Readonly<Record<IdleKind, number>> = { silent: 15, 'half a head': 15, 'used once': 75 }

/** The allowed delay of a busy server, in seconds. It checks every 5 seconds. */
const LATE_S = 15

/** The number of connections that are opened at once, so that no backlog overflows. */
const PORTION = 200

export interface IdleOptions {
  readonly connections: number
  /** True to wait until the server has closed them all, a minute and a half. */
  readonly untilClosed: boolean
  readonly log: (line: string) => void
}

export interface IdleReport {
  readonly connections: number
  /** The number of connections that could not be opened. */
  readonly lost: number
  readonly openSeconds: number
  /** The server's memory for each connection, in KiB. */
  readonly kib: number
  /** The latencies of other calls meanwhile, each on a new connection, in milliseconds. */
  readonly callMs: Spread
  /**
   * By kind, the ages of the first and the last connection when the server closed them; incomplete without the wait.
   */
  readonly closedAfter: Readonly<Partial<Record<IdleKind, { readonly first: number; readonly last: number }>>>
  readonly open: number
  readonly problems: readonly string[]
}

class IdleConnection {
  readonly kind: IdleKind
  readonly opened: Promise<boolean>
  readonly #socket: Socket
  #since = performance.now()
  /** The seconds after its last byte at which the server closed it. */
  closedAfter: number | undefined

  constructor(base: string, index: number) {
    this.kind = IDLE_KINDS[index % IDLE_KINDS.length] ?? 'silent'
    const { hostname: host, port } = new URL(base)
    // An address has 28,000 ports for clients, and other clients need some.
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

/** Measures the latencies of other clients, each on a new connection, in milliseconds. */
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
  if (lost > 0) problems.push(`${lost} connections could not be opened`)
  if (open > 0) problems.push(`${open} connections were not closed`)
  for (const kind of IDLE_KINDS) {
    const { first, last } = closedAfter[kind] ?? {}
    if (first === undefined || last === undefined) continue
    // The client's clock starts a little after the server's.
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
    callMs: spreadOf(times),
    closedAfter,
    open,
    problems: problemsOf(lost, open, closedAfter),
  }
}

/** Holds thousands of idle connections to the real server, while other clients make calls. */
export async function idleConnections(options: IdleOptions): Promise<IdleReport> {
  await using folder = await TemporaryFolder.create('idle-connections')
  const env = { NODE_OPTIONS: '--expose-gc' }
  await using server = await startSignalbox({ storePath: folder.join('store'), env })
  // Awaited here, because the server ends when this function returns.
  return await measure(server, options)
}

/** The time in which a busy server refuses the first connection, in ms. */
const REFUSED_WITHIN_MS = 20_000

export interface FileLimitReport {
  readonly openFiles: number
  /** The number of connections, and of those that were closed at once. */
  readonly tried: number
  readonly refused: number
  /** True if an existing connection got answers meanwhile, and could store a message. */
  readonly othersServed: boolean
  /** The status of a probe of the operators' listener meanwhile. */
  readonly operatorStatus: number
  /** The lines of the log about the limit. */
  readonly lines: readonly string[]
  /** True if a new connection was served after the others were closed. */
  readonly servedAfter: boolean
  readonly exitCode: number | null
}

/** Opens more connections than the process may have open files. */
export async function atFileLimit(openFiles: number): Promise<FileLimitReport> {
  await using folder = await TemporaryFolder.create('file-limit')
  await using server = await startSignalbox({
    storePath: folder.join('store'),
    env: { LOG_LEVEL: 'error' },
    wrapper: ['bash', '-c', `ulimit -n ${openFiles}; exec "$@"`, 'bash'],
  })
  const url = `${server.http}/mcp`
  const send = postBytes(
    url,
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"queue_send","arguments":{"channel":"q","body":"x"}}}',
  )
  const served = async (connection: KeepAliveConnection) =>
    (await connection.request(send)).body.includes('"isError":false')
  const there = await KeepAliveConnection.open(server.http)
  const tried = openFiles * 2
  const { hostname, port } = new URL(server.http)
  const closed = new Set<Socket>()
  const sockets = Array.from({ length: tried }, () => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {}).once('close', () => closed.add(socket))
    return socket.resume()
  })
  await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => {})))
  // The system first accepts a connection that the server then refuses.
  const latest = performance.now() + REFUSED_WITHIN_MS
  for (let before = 0; before === 0 || before !== closed.size;) {
    if (performance.now() > latest) break
    before = closed.size
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  const refused = closed.size
  const othersServed = await served(there)
  const { status: operatorStatus } = await fetch(`${server.api}/health`)
  for (const socket of sockets) socket.destroy()
  let servedAfter = false
  for (let tries = 0; !servedAfter && tries < 50; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    servedAfter = await KeepAliveConnection.open(server.http).then(
      (connection) => served(connection).finally(() => connection.close()),
      () => false,
    )
  }
  there.close()
  const exitCode = await server.process.stop()
  const told = () => server.process.output.split('\n').filter((line) => line.includes('connections refused'))
  // The end of a process can be known before its last output.
  for (let tries = 0; told().length === 0 && tries < 50; tries++)
    await new Promise((resolve) => setTimeout(resolve, 20))
  const lines = told()
  return { openFiles, tried, refused, othersServed, operatorStatus, lines, servedAfter, exitCode }
}

/** Returns the failed expectations at the limit; empty if all were met. */
export function fileLimitProblems(report: FileLimitReport): string[] {
  const problems: string[] = []
  if (report.refused === 0) problems.push('no connection was refused')
  if (report.refused === report.tried) problems.push('every connection was refused')
  if (!report.othersServed) problems.push('an existing connection was not served')
  if (report.operatorStatus !== 200) problems.push(`/health answered ${report.operatorStatus}`)
  if (report.lines.length === 0) problems.push('the log does not report the limit')
  if (!report.servedAfter) problems.push('no connection was served afterwards')
  if (report.exitCode !== 0) problems.push(`the server ended with exit code ${report.exitCode}`)
  return problems
}
