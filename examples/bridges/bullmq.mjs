// Moves the jobs of a BullMQ queue to a Signalbox queue, and keeps moving them until Ctrl-C.
// node bullmq.mjs QUEUE [CHANNEL]    REDIS_URL, SIGNALBOX_URL and SIGNALBOX_TOKEN say where and as whom.
import { connect } from '@signalbox/client'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'

const [queue = 'jobs', channel = queue] = process.argv.slice(2)
const { REDIS_URL = 'redis://127.0.0.1', SIGNALBOX_URL = 'http://127.0.0.1:9090', SIGNALBOX_TOKEN: token } = process.env
const sb = connect(SIGNALBOX_URL, { source: '/bullmq', ...(token && { token }) })
const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null })

// A job that is not stored fails in BullMQ, which tries it again by the job's own `attempts`.
const worker = new Worker(
  queue,
  async ({ id, name, data, opts }) => {
    const options = {
      id: `${queue}:${id}`,
      type: name,
      maxReceives: opts.attempts ?? 1,
      deadLetter: `${channel}.failed`,
    }
    await sb.queue(channel).send(data, options)
  },
  { connection, concurrency: 100 },
)
worker.on('failed', (_job, error) => console.error(`not moved, and left in BullMQ: ${error.message}`))
await worker.waitUntilReady()
console.log(`moving jobs from ${queue} to ${channel}`)
const stop = () => worker.close().then(() => connection.quit())
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void stop())
