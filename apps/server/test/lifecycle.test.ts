import { closeSync, existsSync, openSync } from 'node:fs'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '@signalbox/testkit/free-port'
import { testFolder } from '@signalbox/testkit/test-folder'

import { startCli } from './support/cli.ts'
import { callText, callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

/** Waits until a request that was written before has reached the server: it answers later ones. */
async function arrived(base: string): Promise<void> {
  await fetch(`${base}/ping`)
  await fetch(`${base}/ping`)
}

async function isReady(api: string): Promise<boolean> {
  return fetch(`${api}/ready`).then(
    ({ status }) => status === 200,
    () => false,
  )
}

async function untilNotReady(api: string): Promise<{ checks: { name: string; detail: string }[] }> {
  for (;;) {
    const response = await fetch(`${api}/ready`)
    const state = (await response.json()) as { checks: { name: string; detail: string }[] }
    if (response.status === 503) return state
  }
}

test('lifecycle - SIGINT ends an idle server with exit code 0', async () => {
  const cli = startCli()
  const { http } = await cli.ready()
  // A connection that is kept alive does not hold it.
  await fetch(`${http}/ping`)
  cli.child.kill('SIGINT')
  expect(await cli.exited).toEqual({ code: 0, signal: null })
  expect(cli.lines().at(-1)).toMatchObject({ level: 'info', msg: 'signalbox stopped' })
  expect(cli.stderr).toBe('')
})

test('lifecycle - after SIGTERM the line of every request is in the log', async () => {
  const cli = startCli()
  const { http } = await cli.ready()
  const calls = Array.from({ length: 100 }, (_, i) => callTool(http, 'queue_send', { channel: 'q', body: `${i}` }))
  await calls[0]
  cli.child.kill('SIGTERM')
  const answered = (await Promise.allSettled(calls)).filter(({ status }) => status === 'fulfilled').length
  expect(await cli.exited).toEqual({ code: 0, signal: null })
  const lines = cli.lines()
  expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'signalbox stopped' })
  expect(cli.stderr).toBe('')
  const logged = lines.filter(({ msg, status }) => msg === 'request' && status === 200).length
  expect(logged).toBeGreaterThan(0)
  expect(logged).toBe(answered)
})

test.each(['json', 'pretty'])('lifecycle - without a reader of its log (%s) it still ends in order', async (format) => {
  const cli = startCli({ env: { LOG_FORMAT: format } })
  await cli.ready()
  cli.child.stdout!.destroy()
  cli.child.kill('SIGTERM')
  expect(await cli.exited).toEqual({ code: 0, signal: null })
})

test.skipIf(!existsSync('/dev/full')).each(['json', 'pretty'])(
  'lifecycle - a log on a full disk (%s) stops neither the start nor an orderly end',
  async (format) => {
    const full = openSync('/dev/full', 'w')
    onTestFinished(() => closeSync(full))
    const port = await freePort()
    const cli = startCli({ env: { LOG_FORMAT: format, API_PORT: String(port) }, stdout: full })
    await expect.poll(() => isReady(`http://127.0.0.1:${port}`), { timeout: 20_000 }).toBe(true)
    cli.child.kill('SIGTERM')
    expect(await cli.exited).toEqual({ code: 0, signal: null })
  },
)

test('M3 - SIGTERM ends a long poll with an empty result, and event streams politely', async () => {
  const cli = startCli()
  const { http } = await cli.ready()
  const stream = await fetch(`${http}/mcp`, { headers: { accept: 'text/event-stream' } })
  const poll = new RawConnection(http)
  await poll.write(callText('queue_receive', { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }))
  await arrived(http)
  cli.child.kill('SIGTERM')
  // Read to its end: a connection that was cut would throw.
  expect(await stream.text()).toMatch(/^: /)
  expect(await cli.exited).toEqual({ code: 0, signal: null })
  await poll.closed
  expect(poll.received).toMatch(/^HTTP\/1\.1 200 /)
  const { result } = JSON.parse(poll.received.split('\r\n\r\n')[1]!) as { result: { content: unknown[] } }
  expect(result).toMatchObject({ isError: false })
  expect(result.content[0]).toMatchObject({ text: '[]' })
})

test('lifecycle - a shutdown finishes calls in flight and accepts no new ones', async () => {
  const server = await serve({ shutdownSeconds: 20 })
  const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>()
  const { promise: answer, resolve: giveAnswer } = Promise.withResolvers<void>()
  await server.broker.as({ clientId: 'worker' }).commands.subscribe('work', {}, async () => {
    tellAsked()
    await answer
    return {}
  })
  const call = callTool(server.http.url, 'command_send', { channel: 'work', body: 'x', timeout_seconds: 60 })
  await asked
  const closed = server.close()
  await untilNotReady(server.api.url)
  await expect(callTool(server.http.url, 'queue_send', { channel: 'q', body: 'late' })).rejects.toThrow(
    /fetch failed|no JSON-RPC answer/,
  )
  giveAnswer()
  expect(await call).toMatchObject({ isError: false })
  await closed
})

test('lifecycle - /ready says no at once, calls over time are cut off after SHUTDOWN_SECONDS, exit code 0', async () => {
  const cli = startCli({ env: { SHUTDOWN_SECONDS: '3' } })
  const { http, api } = await cli.ready()
  const command = new RawConnection(http)
  await command.write(callText('command_send', { channel: 'nobody', body: 'x', timeout_seconds: 3600 }))
  await arrived(http)
  cli.child.kill('SIGTERM')
  const { checks } = await untilNotReady(api)
  expect(checks[0]).toEqual({ name: 'server', ok: false, detail: 'shutting down' })
  expect(await (await fetch(`${api}/health`)).text()).toBe('healthy')
  expect(await cli.exited).toEqual({ code: 0, signal: null })
  await command.closed
})

test.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('lifecycle - a second signal (%s) ends the process at once', async (signal, code) => {
  const cli = startCli({ env: { SHUTDOWN_SECONDS: '3600' } })
  const { http, api } = await cli.ready()
  const command = new RawConnection(http)
  await command.write(callText('command_send', { channel: 'nobody', body: 'x', timeout_seconds: 3600 }))
  await arrived(http)
  cli.child.kill('SIGTERM')
  await untilNotReady(api)
  cli.child.kill(signal)
  expect(await cli.exited).toEqual({ code, signal: null })
})

test('lifecycle - close is idempotent', async () => {
  const server = await serve()
  const both = await Promise.all([server.close(), server.close()])
  expect(both).toEqual([undefined, undefined])
  await server[Symbol.asyncDispose]()
  await expect(fetch(`${server.http.url}/ping`)).rejects.toThrow('fetch failed')
  await expect(fetch(`${server.api.url}/ping`)).rejects.toThrow('fetch failed')
})

test('M14 - messages survive a restart, except those that were received within the grace of the shutdown', async () => {
  const settings = { store: { path: testFolder() }, settleGraceMs: 10_000 }
  const first = await serve(settings)
  const before = first.http.url
  await callTool(before, 'queue_send', { channel: 'q', body: 'kept', tags: { a: 'b' } })
  await callTool(before, 'events_store_publish', { channel: 'log', body: 'one' })
  await callTool(before, 'queue_send', { channel: 'taken', body: 'once' })
  const taken = await callTool(before, 'queue_receive', { channel: 'taken', max_messages: 1 })
  expect(JSON.parse(taken.text)).toHaveLength(1)
  await first.close()

  const { url: http } = (await serve(settings)).http
  const received = await callTool(http, 'queue_receive', { channel: 'q', max_messages: 10 })
  expect(JSON.parse(received.text)).toEqual([{ body: 'kept', metadata: '', tags: { a: 'b' } }])
  await callTool(http, 'events_store_publish', { channel: 'log', body: 'two' })
  const read = await callTool(http, 'events_store_read', { channel: 'log', max_messages: 10 })
  expect(JSON.parse(read.text)).toMatchObject([
    { body: 'one', sequence: 1 },
    { body: 'two', sequence: 2 },
  ])
  const again = await callTool(http, 'queue_receive', { channel: 'taken', max_messages: 1, wait_timeout_seconds: 1 })
  expect(again.text).toBe('[]')
})

test('lifecycle - acknowledged messages survive kill -9', async () => {
  const path = testFolder()
  const first = startCli({ env: { STORE_PATH: path } })
  const before = await first.ready()
  const bodies = Array.from({ length: 50 }, (_, i) => `message ${i}`)
  await Promise.all(bodies.map((body) => callTool(before.http, 'queue_send', { channel: 'q', body })))
  first.child.kill('SIGKILL')
  expect(await first.exited).toEqual({ code: null, signal: 'SIGKILL' })

  const { http } = await serve({ store: { path } })
  const received = await callTool(http.url, 'queue_receive', { channel: 'q', max_messages: 100 })
  const found = (JSON.parse(received.text) as { body: string }[]).map(({ body }) => body)
  expect(found.sort()).toEqual(bodies.sort())
})
