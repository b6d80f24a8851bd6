import { createBroker, encodeText } from '@signalbox/broker-core'
import { a2aConnector, AgentRequests } from '@signalbox/connector-a2a'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { AdmissionControl } from '@signalbox/http-kit'
import { openRegistry } from '@signalbox/registry'
import { testServer } from '@signalbox/testkit/test-server'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

const REPLY = `{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(500_000)}"}`
const TIMEOUTS = { defaultTimeoutMs: 30_000, maxTimeoutMs: 60_000 }
const CALL = encodeText('{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}')

/** An agent that sends its reply but for the last byte. */
async function startAgent(): Promise<{ readonly url: string; readonly finish: () => void }> {
  const held: (() => void)[] = []
  const server = await testServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': REPLY.length })
    response.write(REPLY.slice(0, -1))
    held.push(() => response.end(REPLY.slice(-1)))
  })
  const { port } = server
  return { url: `http://127.0.0.1:${port}/`, finish: () => held.splice(0).forEach((end) => end()) }
}

test.skipIf(NATS_SERVER === undefined)(
  'replies - a reply counts for the caller of another node, on the node that serves the agent and on its own',
  async () => {
    const server = await NatsServer.start()
    onTestFinished(() => server.stop())
    const open = async () => {
      const engine = await openNatsEngine({ servers: [server.url] })
      onTestFinished(() => engine.close())
      return createBroker(engine)
    }
    const serving = await open()
    const asking = await open()
    const admission = new AdmissionControl({ limits: { caller: { bodyBytes: 900_000 } } })
    const registry = await openRegistry(serving.system, {})
    onTestFinished(() => registry.close())
    const connector = a2aConnector(
      { ...serving, registry, requests: new AgentRequests(serving.system, TIMEOUTS) },
      { frontDoor: { admission } },
    )
    onTestFinished(() => connector.close())
    const agent = await startAgent()
    await registry.register({ agent_id: 'agent-1', name: 'agent-1', url: agent.url }, { clientId: 'owner' })

    const requests = new AgentRequests(asking.system, TIMEOUTS)
    const charged: number[] = []
    const hold = { charge: (bytes: number) => void charged.push(bytes), refusesBody: () => undefined }
    const caller = { clientId: 'alice', account: 'client:alice' }
    const first = requests.request('agent-1', CALL, { caller, hold })
    await until(() => admission.use.bodyBytes === REPLY.length)
    expect(admission.accountOf('client:alice').bodyBytes).toBe(REPLY.length)
    const refused = await requests.request('agent-1', CALL, { caller })
    expect(refused).toMatchObject({ executed: false, failure: 'busy' })
    expect(refused.error).toMatch(/^server busy: this caller has reached its limit of 900000 bytes/)
    const other = requests.request('agent-1', CALL, { caller: { clientId: 'bob', account: 'client:bob' } })
    await until(() => admission.use.bodyBytes === 2 * REPLY.length)
    agent.finish()
    expect((await first).body).toHaveLength(REPLY.length)
    expect((await other).status).toBe(200)
    expect(charged).toEqual([REPLY.length])
    await until(() => admission.use.bodyBytes === 0)
  },
)
