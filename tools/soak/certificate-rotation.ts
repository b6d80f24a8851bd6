import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'node:tls'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { KeepAliveConnection, postBytes } from '../harness/keep-alive-connection.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'
import type { RotationOptions, RotationReport } from './rotation.ts'
import { replaceFile, RotationLoad, testCertificate } from './rotation.ts'

/** How soon a new certificate must be taken up, in milliseconds: the server reads the files each second. */
const PATIENCE_MS = 10_000

const CERTIFICATES = ['server', 'next-server'].map((name) => ({
  cert: testCertificate(`${name}.crt`),
  key: testCertificate(`${name}.key`),
}))

/** The certificate that the server shows to a new connection. */
function shown(url: string, ca: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), ca }, () => {
      resolve(socket.getPeerX509Certificate()?.toString() ?? '')
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

/**
 * Certificates are replaced while clients call the real server over TLS: half of them on one connection each, half on a
 * new one for each request.
 */
export async function rotateCertificates(options: RotationOptions): Promise<RotationReport> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await TemporaryFolder.create('certificate-rotation'))
  const files = { cert: folder.join('tls.crt'), key: folder.join('tls.key') }
  const use = async (index: number): Promise<void> => {
    const { cert = '', key = '' } = CERTIFICATES[index % CERTIFICATES.length] ?? {}
    replaceFile(files.key, key)
    // As two writes are: for a moment key and certificate do not go together.
    await pause(Math.random() * 50)
    replaceFile(files.cert, cert)
  }
  await use(0)
  const env = { SECURITY_CERT_FILE: files.cert, SECURITY_KEY_FILE: files.key, LOG_LEVEL: 'error' }
  const server = stack.use(await startSignalbox({ storePath: folder.join('store'), env }))
  const url = `${server.http}/mcp`
  const request = postBytes(url, '{"jsonrpc":"2.0","id":1,"method":"ping"}')
  const ca = testCertificate('authority.crt')
  const load = new RotationLoad()
  const kept = await Promise.all(
    Array.from({ length: Math.ceil(options.clients / 2) }, () => KeepAliveConnection.open(url, { ca })),
  )
  const callAnew = async () => {
    const connection = await KeepAliveConnection.open(url, { ca })
    try {
      return await connection.request(request)
    } finally {
      connection.close()
    }
  }
  const begin = performance.now()
  const calls = Promise.all([
    ...kept.map((connection) => load.client(() => connection.request(request))),
    ...Array.from({ length: Math.floor(options.clients / 2) }, () => load.client(callAnew)),
  ])
  let rotations = 0
  let takenUp = 0
  while (performance.now() - begin < options.seconds * 1000) {
    await use(++rotations)
    const next = CERTIFICATES[rotations % CERTIFICATES.length]?.cert.trim()
    const until = performance.now() + PATIENCE_MS
    let found = false
    while (!found && performance.now() < until) {
      await pause(20)
      found = (await shown(url, ca)).trim() === next
    }
    if (found) takenUp++
    await pause(options.intervalMs)
  }
  load.ended = true
  await calls
  const seconds = (performance.now() - begin) / 1000
  for (const connection of kept) connection.close()
  const { requests, failures } = load
  return { seconds, requests, failures, rotations, takenUp, exitCode: await server.process.stop() }
}
