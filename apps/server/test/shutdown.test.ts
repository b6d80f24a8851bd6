import { setTimeout as delay } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { register, startAgent } from './support/agent.ts'
import { startCli } from './support/cli.ts'
import { callTool } from './support/mcp.ts'

/** Runs the timers of the process fifty times as fast: Fastify's own limit of 10 s for a close is over in 200 ms. */
const FAST_TIMERS = `
  const { setTimeout } = globalThis
  globalThis.setTimeout = (callback, ms, ...rest) => setTimeout(callback, ms / 50, ...rest)
`

test('shutdown - a call that needs most of SHUTDOWN_SECONDS is answered, exit code 0', async () => {
  const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>()
  const { promise: stopping, resolve: tellStopping } = Promise.withResolvers<void>()
  const agent = await startAgent(async (_request, response) => {
    tellAsked()
    await stopping
    // Stands for 17 s, which no event marks the end of.
    await delay(350)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: 'late' }))
  })
  const cli = startCli({
    env: { SHUTDOWN_SECONDS: '300', CONNECTORSA2_A_DEFAULT_TIMEOUT_SECONDS: '300' },
    preload: FAST_TIMERS,
  })
  const { http } = await cli.ready()
  await register(http, { agent_id: 'slow', name: 'Slow', version: '1', url: agent.url })
  const call = callTool(http, 'agent_query', { agent_id: 'slow', method: 'work', params: {} })
  await asked
  cli.child.kill('SIGTERM')
  await cli.until(() => cli.stdout.includes('is shutting down'), 'the shutdown')
  tellStopping()
  expect(await call).toMatchObject({ isError: false, text: expect.stringContaining('late') })
  expect(await cli.exited).toEqual({ code: 0, signal: null })
})

test('shutdown - a server that waits for its store ends on the first SIGTERM, exit code 0', async () => {
  // Port 9 (discard) answers on no machine that runs tests.
  const cli = startCli({ env: { ENGINE: 'nats', NATS_SERVERS: 'nats://127.0.0.1:9', SHUTDOWN_SECONDS: '3600' } })
  await cli.until(() => cli.stdout.includes('cannot be reached'), 'the wait for the store')
  cli.child.kill('SIGTERM')
  expect(await cli.exited).toEqual({ code: 0, signal: null })
  expect(cli.lines().at(-1)).toMatchObject({ level: 'info', msg: 'signalbox stopped' })
  expect(cli.stderr).toBe('')
})
