import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { KeepAliveConnection, postBytes } from '../harness/keep-alive-connection.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'

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
