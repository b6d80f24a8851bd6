// Prints the number of source files with a function that runs on the main thread, for each of five journeys.
// `--files` also lists the files.
import { Session } from 'node:inspector/promises'

import { serveHttp } from '@signalbox/testkit/loopback'
import { toolCall } from '@signalbox/testkit/mcp-client'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { createConfig, startServer } from 'signalbox'

/** A file counts if it runs in each of these repetitions: timers that happen to run do not count. */
const REPETITIONS = 5

await using folder = await TemporaryFolder.create('census')
let onDelivery = (): void => {}
await using agent = await serveHttp((request, response) => {
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end('data: {"jsonrpc":"2.0","id":1,"result":{"kind":"message","final":true}}\n\n')
})
await using endpoint = await serveHttp((request, response) => {
  request.resume()
  response.writeHead(200, { 'WebHook-Allowed-Origin': '*' }).end()
  if (request.method === 'POST') onDelivery()
})
const server = await startServer(
  createConfig({
    log: { level: 'silent' },
    http: { port: 0 },
    api: { port: 0 },
    store: { path: folder.join('store') },
    webhooks: { enable: true, keyFile: folder.join('key'), allow: ['127.0.0.1'] },
  }),
)
const http = server.http.url
const api = server.api.url
await post(`${http}/agents/register`, { agent_id: 'census', name: 'census', url: agent.url })
await post(`${http}/ce/subscriptions`, { sink: endpoint.url, config: { channel: 'hook' } })

const send = JSON.parse(toolCall('queue_send', { channel: 'census', body: 'x' })) as object
const event = { specversion: '1.0', source: '/census', type: 'census', data: 1 }
let events = 0
const JOURNEYS: Readonly<Record<string, () => Promise<unknown>>> = {
  queue_send: () => post(`${http}/mcp`, send),
  'message/stream': () => post(`${http}/a2a/census`, { jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} }),
  'a CloudEvent': () => publish('event', 'census'),
  'a delivery to a webhook': async () => {
    const delivery = Promise.withResolvers<void>()
    onDelivery = delivery.resolve
    await publish('event-store', 'hook')
    await delivery.promise
  },
  'the list of channels in the console': () => get(`${api}/api/channels`),
}

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const counts: Record<string, number> = {}
for (const [name, journey] of Object.entries(JOURNEYS)) {
  // The first one also loads and compiles.
  await journey()
  await settled()
  let common: readonly string[] | undefined
  for (let i = 0; i < REPETITIONS; i++) {
    await filesRun()
    await journey()
    await settled()
    const files = await filesRun()
    common = common?.filter((file) => files.has(file)) ?? [...files]
  }
  if (process.argv.includes('--files')) console.error(`${name}\n  ${common?.toSorted().join('\n  ')}`)
  counts[name] = common?.length ?? 0
}
session.disconnect()
await server.close()
console.log(JSON.stringify(counts))

/** Returns the source files with a function that has run since the last call. */
async function filesRun(): Promise<ReadonlySet<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const ran = result.filter(({ functions }) =>
    functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0),
  )
  return new Set(ran.flatMap(({ url }) => /\/((?:packages|apps)\/[^/]+\/src\/.*)$/.exec(url)?.[1] ?? []))
}

/** Waits for work after the answer. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50))
}

function publish(route: 'event' | 'event-store', subject: string): Promise<void> {
  const body = { ...event, id: String(++events), subject }
  return post(`${http}/ce/send/${route}`, body, 'application/cloudevents+json')
}

async function post(url: string, body: object, type = 'application/json'): Promise<void> {
  const headers = { 'content-type': type, accept: 'application/json, text/event-stream' }
  await expectSuccess(await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }))
}

async function get(url: string): Promise<void> {
  await expectSuccess(await fetch(url))
}

async function expectSuccess(response: Response): Promise<void> {
  const text = await response.text()
  if (!response.ok || text.includes('"error":{')) throw new Error(`${response.url}: ${response.status} ${text}`)
}
