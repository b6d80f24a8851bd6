// Moves the messages of an Amazon SQS queue to a Signalbox queue, and keeps moving them until Ctrl-C.
// npm install @aws-sdk/client-sqs; node sqs.mjs QUEUE_URL CHANNEL    SIGNALBOX_URL and SIGNALBOX_TOKEN say where and as whom.
import { DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { connect } from '@signalbox/client'

const [QueueUrl, channel = 'jobs'] = process.argv.slice(2)
const { SIGNALBOX_URL = 'http://127.0.0.1:9090', SIGNALBOX_TOKEN: token } = process.env
const sb = connect(SIGNALBOX_URL, { source: '/sqs', ...(token && { token }) })
const sqs = new SQSClient()
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort())

const receive = new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 20 })
while (!stop.signal.aborted) {
  const { Messages = [] } = await sqs.send(receive, { abortSignal: stop.signal }).catch((error) => {
    if (stop.signal.aborted) return {}
    throw error
  })
  for (const { Body = '', MessageId, ReceiptHandle } of Messages) {
    await sb.queue(channel).send(Body, { id: MessageId })
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
  }
}
