import type { Attack } from '../attack.ts'
import { outcomeOf } from '../caller.ts'

const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })

/** Requests that a page of another site, or of a rebound name, makes a browser send. */
const FOREIGN: readonly Readonly<Record<string, string>>[] = [
  { host: 'evil.example:9090' },
  { host: '127.0.0.1.evil.example' },
  { host: 'localhost.evil.example:9090' },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
  { origin: 'https://evil.example' },
  { origin: 'null' },
]

export const rebinding: Attack = {
  name: 'rebinding',
  about: 'requests that foreign pages make a browser send: rebound names, navigations, other origins',
  prepare: (scene) =>
    Promise.resolve(async () => {
      const { http, api, stranger: caller } = scene
      const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
      const requests: readonly (readonly [method: string, url: string, headers: Readonly<Record<string, string>>])[] = [
        ['POST', `${http}/mcp`, json],
        ['GET', `${http}/mcp`, { accept: 'text/event-stream' }],
        ['POST', `${http}/a2a/attack`, json],
        ['GET', `${http}/a2a/attack/stream?message=x`, {}],
        ['GET', `${http}/agents`, {}],
        ['POST', `${http}/agents/register`, json],
        ['GET', `${http}/ce/subscribe/commands?channel=honest`, {}],
        ['POST', `${http}/ce/send/event?channel=honest`, { 'content-type': 'text/plain' }],
        ['GET', `${api}/api/config`, {}],
        ['GET', `${api}/metrics`, {}],
        ['POST', `${api}/api/actions/purge_queue`, json],
      ]
      for (const foreign of FOREIGN) {
        for (const [method, url, headers] of requests) {
          const options = { headers: { ...headers, ...foreign }, ...(method === 'POST' ? { body: PING } : {}) }
          const answer = await scene.tally.of(caller.ask(method, url, { ...options, timeoutMs: 5_000 }))
          const refused = answer !== undefined && (answer.status >= 400 || outcomeOf(answer).includes(' -32'))
          scene.tally.expect(refused, `${method} ${url} with ${JSON.stringify(foreign)} was served`)
        }
      }
    }),
}
