// An agent that counts words, without dependencies except Node: node agent.ts http://127.0.0.1:9090
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'

const [broker = 'http://127.0.0.1:9090', agentId = 'word-counter'] = process.argv.slice(2)

async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const { id, method, params } = JSON.parse(await text(incoming))
  const said: string = params?.message?.parts?.map((part: { text?: string }) => part.text ?? '').join(' ') ?? ''
  const words = said.split(/\s+/).filter((word) => word !== '')
  response.setHeader('content-type', method === 'message/stream' ? 'text/event-stream' : 'application/json')
  const rpc = (outcome: object) => JSON.stringify({ jsonrpc: '2.0', id, ...outcome })
  if (method === 'message/send') {
    const parts = [{ kind: 'text', text: `${words.length} words` }]
    response.end(rpc({ result: { kind: 'message', role: 'agent', messageId: randomUUID(), parts } }))
  } else if (method === 'message/stream') {
    const task = { taskId: randomUUID(), contextId: params?.contextId ?? randomUUID() }
    const tell = (event: object) => response.write(`data: ${rpc({ result: { ...event, ...task } })}\n\n`)
    tell({ kind: 'status-update', status: { state: 'working' }, final: false })
    for (const [i, word] of words.entries()) {
      if (response.destroyed) return // The caller has disconnected.
      const parts = [{ kind: 'text', text: word }]
      tell({ kind: 'artifact-update', artifact: { artifactId: `word-${i + 1}`, parts } })
      await setTimeout(50)
    }
    tell({ kind: 'status-update', status: { state: 'completed' }, final: true })
    response.end()
  } else {
    response.end(rpc({ error: { code: -32601, message: `no such method: ${method}` } }))
  }
}

async function registry(path: string, body: object): Promise<void> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(`${broker}/agents/${path}`, init).catch(() => Response.error())
  if (!response.ok) throw new Error(`${broker} ${path}: ${response.status || 'unreachable'} ${await response.text()}`)
}

const server = createServer((...exchange) => void serve(...exchange).catch(() => exchange[1].writeHead(400).end()))
await once(server.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1'), 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const skills = [{ id: 'count', name: 'Counts words', tags: ['text'] }]
const register = () => registry('register', { agent_id: agentId, name: 'Word counter', url, skills })
const report = ({ message }: Error) => console.error(message.trim())
await register().catch((error: Error) => [report(error), process.exit(1)])
console.log(`${agentId} is registered and listens on ${url}`)

// More often than the time-to-live of 300 s. After an error, such as an expired one, it registers again.
const beat = () => void registry('heartbeat', { agent_id: agentId }).catch(register).catch(report)
setInterval(beat, Number(process.env['HEARTBEAT_MS'] ?? 60_000)).unref()
const leave = () => registry('deregister', { agent_id: agentId }).catch(report)
const stop = () => void leave().finally(() => server.close())
process.once('SIGTERM', stop).once('SIGINT', stop)
