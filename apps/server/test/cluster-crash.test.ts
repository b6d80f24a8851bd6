import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { callAgent, listed, register, startAgent } from './support/agent.ts'
import { startCli } from './support/cli.ts'
import { PATIENT, serveNode, startNats } from './support/nodes.ts'
import { inFlight, openAcross, openStream, STATUS } from './support/streams-across.ts'

describe.skipIf(NATS_SERVER === undefined)('a node is killed', () => {
  test(
    'A11, CL-14 - a node that is killed with a stream and a call costs seconds, and both callers are told',
    { timeout: 150_000 },
    async () => {
      const nats = await startNats()
      const one = await serveNode(nats)
      const env = { ENGINE: 'nats', NATS_SERVERS: nats.url, LOG_LEVEL: 'warn' }
      const cli = startCli({ env })
      const two = await cli.ready()
      const agent = await startAgent(({ method }, response) => {
        if (method === 'message/send') return
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(STATUS)
      })
      const base = one.http.url
      await register(base, { agent_id: 'held', name: 'held', url: agent.url })
      await expect.poll(() => listed(two.http), PATIENT).toEqual(['held'])
      const stream = await openAcross({ http: base, api: one.api.url }, two, 'held')
      const calls: Promise<unknown>[] = []
      while ((await inFlight(two.api, 'held')) < 2) {
        const asked = agent.asked.length
        calls.push(callAgent(base, 'held', 'message/send', { configuration: { timeout: 120 } }))
        await expect.poll(() => agent.asked.length, PATIENT).toBe(asked + 1)
      }
      const across = calls.at(-1)
      const killedAt = performance.now()
      cli.child.kill('SIGKILL')
      await stream.ended
      const streamSeconds = (performance.now() - killedAt) / 1000
      expect(stream.seen.at(-1)).toMatchObject({
        event: 'task.error',
        json: { payload: { message: 'stream interrupted' } },
      })
      expect(await across).toMatchObject({ error: { code: -32001 } })
      const callSeconds = (performance.now() - killedAt) / 1000
      // Each is found out after 15 s of silence, far from the 120 s that the call had.
      expect(streamSeconds).toBeLessThan(45)
      expect(callSeconds).toBeLessThan(50)
      const other = await openStream(base, 'held')
      expect((await other.next()).event).toBe('task.status')
    },
  )
})
