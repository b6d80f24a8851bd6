import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'

import type { AgentCard } from '@a2a-js/sdk'
import { Role, TaskState } from '@a2a-js/sdk'
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server'
import type { AgentExecutor } from '@a2a-js/sdk/server'
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express'

const status = (state: TaskState) => ({ state, message: undefined, timestamp: undefined })

/** The official SDK's sample: a task that is submitted, works, has an artifact, and ends in the state that was asked for. */
const executor: AgentExecutor = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const [part] = userMessage.parts
    const asked = part?.content?.$case === 'text' ? part.content.value : ''
    if (asked === 'message') {
      const text = {
        content: { $case: 'text' as const, value: 'hi' },
        metadata: undefined,
        filename: '',
        mediaType: '',
      }
      bus.publish(
        AgentEvent.message({
          messageId: 'm',
          contextId,
          taskId: '',
          role: Role.ROLE_AGENT,
          parts: [text],
          metadata: undefined,
          extensions: [],
          referenceTaskIds: [],
        }),
      )
      bus.finished()
      return
    }
    const task = { id: taskId, contextId, artifacts: [], history: [], metadata: undefined }
    bus.publish(AgentEvent.task({ ...task, status: status(TaskState.TASK_STATE_SUBMITTED) }))
    const update = { taskId, contextId, metadata: undefined }
    bus.publish(AgentEvent.statusUpdate({ ...update, status: status(TaskState.TASK_STATE_WORKING) }))
    const part1 = {
      content: { $case: 'text' as const, value: 'result ä' },
      metadata: undefined,
      filename: '',
      mediaType: '',
    }
    const artifact = { artifactId: 'a', name: '', description: '', parts: [part1], metadata: undefined, extensions: [] }
    bus.publish(AgentEvent.artifactUpdate({ ...update, artifact, append: false, lastChunk: true }))
    const state = asked === 'fail' ? TaskState.TASK_STATE_FAILED : TaskState.TASK_STATE_COMPLETED
    bus.publish(AgentEvent.statusUpdate({ ...update, status: status(state) }))
    bus.finished()
  },
  async cancelTask() {},
}

/** The SDK's peer. It brings no types of its own, so the compiler must not look. */
const EXPRESS: string = 'express'

// An agent on the official SDK, which speaks A2A 1.0, and 0.3 to whoever does not name a version, as its own process:
// the express beneath it does not run under the test runner's resolution. It tells its parent its URL.
const card: AgentCard = {
  name: 'sample',
  description: '',
  version: '1',
  supportedInterfaces: ['1.0', '0.3'].map((protocolVersion) => ({
    url: 'http://127.0.0.1/',
    protocolBinding: 'JSONRPC',
    tenant: '',
    protocolVersion,
  })),
  provider: undefined,
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
  signatures: [],
}
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor)
const { default: express } = (await import(EXPRESS)) as {
  default: () => { use: (handler: unknown) => void }
}
const app = express()
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: true } }))
const server = createServer(app as unknown as RequestListener).listen(0, '127.0.0.1')
await once(server, 'listening')
const address = server.address()
process.send?.(typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '')
process.once('disconnect', () => process.exit())
