// Moves the messages of a KubeMQ queue to a Signalbox queue, and keeps moving them until Ctrl-C.
// node kubemq.mjs QUEUE [CHANNEL]    KUBEMQ_URL (its REST interface), SIGNALBOX_URL and SIGNALBOX_TOKEN say where and as whom.
import { connect } from '@signalbox/client'

const [queue = 'jobs', channel = queue] = process.argv.slice(2)
const { KUBEMQ_URL, SIGNALBOX_URL = 'http://127.0.0.1:9090', SIGNALBOX_TOKEN: token } = process.env
const sb = connect(SIGNALBOX_URL, { source: '/kubemq', ...(token && { token }) })
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort())

async function kubemq(path, call) {
  const body = JSON.stringify({ ClientID: 'signalbox', Channel: queue, ...call })
  const headers = { 'content-type': 'application/json' }
  const answer = await (await fetch(KUBEMQ_URL + path, { method: 'POST', headers, body })).json()
  if (answer.is_error) throw new Error(`KubeMQ: ${answer.message}`)
  return answer.data
}

// A receive of this interface removes the message from KubeMQ: take one at a time, and send it back if it is not stored.
while (!stop.signal.aborted) {
  const { Messages } = await kubemq('/queue/receive', { MaxNumberOfMessages: 1, WaitTimeSeconds: 5 })
  for (const { MessageID: id, Body, Metadata, Tags } of Messages ?? []) {
    const sent = sb.queue(channel).send(Buffer.from(Body, 'base64').toString(), { id })
    await sent.catch((error) => {
      console.error(`not moved, and sent back to KubeMQ: ${error.message}`)
      return kubemq('/queue/send', { Id: id, Body, Metadata, Tags })
    })
  }
}
