// A pull agent: it calls the server, so it runs behind a firewall or on a laptop: node pull-agent.ts http://127.0.0.1:9090
// Requests wait while it is away. SIGTERM lets running requests finish.
import { setTimeout } from 'node:timers/promises'

import type { AgentWork } from '@signalbox/client'
import { connect, Reject } from '@signalbox/client'

const [url = 'http://127.0.0.1:9090', id = 'shouter'] = process.argv.slice(2)

/** Streams the words in capital letters. The server adds the ids of the task to the events. */
async function* shout({ text, attempt, callerId, signal }: AgentWork) {
  if (text.trim() === '') throw new Reject('the message has no text') // The task fails with this reason.
  console.log(`request of ${callerId}, delivery ${attempt}: ${text}`)
  yield { statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } }
  for (const word of text.trim().split(/\s+/)) {
    await setTimeout(50, undefined, { signal }) // The signal aborts when the caller cancels the task.
    yield `${word.toUpperCase()} `
  }
}

const stop = new AbortController()
process.once('SIGTERM', () => stop.abort()).once('SIGINT', () => stop.abort())

const sb = connect(url, { signal: stop.signal })
const skills = [{ id: 'shout', name: 'Shouts', tags: ['text'] }]
const workers = sb.agents.work(id, shout, { card: { name: 'Shouter', skills }, concurrency: 4 })
console.log(`${id} works on its requests`)
await workers.closed
await sb.close()
