import type { Row } from '../row.ts'
import { row as a2aNativeSend } from './a2a-native-send.ts'
import { row as a2aNativeStream } from './a2a-native-stream.ts'
import { row as a2aSend } from './a2a-send.ts'
import { row as a2aStream } from './a2a-stream.ts'
import { row as ceSend } from './ce-send.ts'
import { row as coldStart } from './cold-start.ts'
import { row as console } from './console.ts'
import { row as depth } from './depth.ts'
import { row as enqueue } from './enqueue.ts'
import { row as fanOutSse } from './fan-out-sse.ts'
import { row as fanOut } from './fan-out.ts'
import { row as idleStreams } from './idle-streams.ts'
import { row as longPoll } from './long-poll.ts'
import { row as loopDelay } from './loop-delay.ts'
import { row as mcpProbes } from './mcp-probes.ts'
import { row as mcpRevisions } from './mcp-revisions.ts'
import { row as metrics } from './metrics.ts'
import { row as monitor } from './monitor.ts'
import { row as natsHops } from './nats-hops.ts'
import { row as natsSend } from './nats-send.ts'
import { row as queueSend } from './queue-send.ts'
import { row as receiveAck } from './receive-ack.ts'
import { row as toolCall } from './tool-call.ts'
import { row as webhooks } from './webhooks.ts'

/** Every implemented goal of the performance budget, in its order. */
export const ROWS: readonly Row[] = [
  toolCall,
  mcpRevisions,
  mcpProbes,
  queueSend,
  ceSend,
  enqueue,
  receiveAck,
  longPoll,
  depth,
  loopDelay,
  metrics,
  monitor,
  console,
  a2aSend,
  a2aStream,
  a2aNativeSend,
  a2aNativeStream,
  idleStreams,
  fanOut,
  fanOutSse,
  coldStart,
  natsSend,
  natsHops,
  webhooks,
]
