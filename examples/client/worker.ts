// Works on a queue until it is stopped: node worker.ts http://127.0.0.1:9090
// Results go to an events store, and a query shows their number. SIGTERM lets running jobs finish.
import { connect, Reject } from '@signalbox/client'

interface Job {
  readonly text: string
}

interface Result {
  readonly text: string
  readonly words: number
}

const stop = new AbortController()
process.once('SIGTERM', () => stop.abort()).once('SIGINT', () => stop.abort())

const sb = connect(process.argv[2] ?? 'http://127.0.0.1:9090', { source: '/examples/worker', signal: stop.signal })

// The lease is renewed while the handler runs. An error puts the job back, and after three receives
// it moves to the dead-letter queue, because its sender says so: { maxReceives: 3, deadLetter: 'jobs.dead' }.
const pool = sb.queue<Job>('jobs').work({ concurrency: 4, lease: '60s' }, async ({ text }, { id }) => {
  const words = text.split(/\s+/).filter((word) => word !== '').length
  // With the job's id, a job that is delivered again within two minutes appends no second result.
  await sb.store<Result>('jobs.done').append({ text, words }, { id })
})

// Counts are built from the store: each start reads it again, and then follows it.
const totals = new Map<string, number>()
const counting = sb
  .store<Result>('jobs.done')
  .project({ load: () => undefined, save: () => {} }, ({ data }) => totals.set(data.text, data.words))

const answering = sb.answer<string>('queries', 'jobs.words', (text) => {
  const words = totals.get(text)
  if (words === undefined) throw new Reject(`no job was done for ${JSON.stringify(text)}`)
  return words
})

await Promise.all([counting.ready, answering.ready])
console.log('working on jobs')
await pool.closed
await sb.close()
