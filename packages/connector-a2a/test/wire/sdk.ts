import {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk'
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import type { A2ARequestHandler } from '@a2a-js/sdk/server'
import { ServerCallContext } from '@a2a-js/sdk/server'
import { isJsonObject } from '@signalbox/http-kit/internal'

import type { Operation } from '../../src/wire/index.ts'
import { METHODS } from '../../src/wire/index.ts'

/** Operations whose requests and results the SDK translates. */
export type SdkOperation = Exclude<Operation, 'list' | 'extended-card'>

/** Returns the params that the SDK's client of 1.0 sends to an agent of 0.3. */
export async function sdkRequestTo03(operation: SdkOperation, params10: unknown): Promise<unknown> {
  const { requests } = await call(operation, params10, null)
  return requests[0]?.['params']
}

/** Returns the params of 1.0 that the SDK's server reads in a request of 0.3. */
export async function sdkRequestTo10(operation: SdkOperation, params03: unknown): Promise<unknown> {
  const { asked } = await serve(operation, params03, undefined)
  return asked
}

/** Returns the result or, of a stream, the event that the SDK's server of 1.0 answers to a caller of 0.3. */
export async function sdkResultTo03(operation: SdkOperation, result10: unknown): Promise<unknown> {
  const { answer } = await serve(operation, SOME_PARAMS_03, result10)
  return isJsonObject(answer) ? answer['result'] : undefined
}

/** Returns the result or, of a stream, the event that the SDK's client of 1.0 reads in the answer of an agent of 0.3. */
export async function sdkResultTo10(operation: SdkOperation, result03: unknown): Promise<unknown> {
  const { answer } = await call(operation, {}, result03)
  return answer
}

const SOME_PARAMS_03 = {
  id: 't',
  taskId: 't',
  pushNotificationConfigId: 'c',
  pushNotificationConfig: { url: 'https://caller.example/push' },
  message: { kind: 'message', messageId: 'm', role: 'user', parts: [] },
}

async function call(operation: SdkOperation, params10: unknown, result03: unknown) {
  const requests: { readonly [name: string]: unknown }[] = []
  const fetchImpl: typeof fetch = (_url, init) => {
    const request: unknown = JSON.parse(typeof init?.body === 'string' ? init.body : '')
    if (!isJsonObject(request)) throw new Error('the SDK sent no object')
    requests.push(request)
    const text = JSON.stringify({ jsonrpc: '2.0', id: request['id'], result: result03 })
    const { streams } = METHODS[operation]
    const type = streams ? 'text/event-stream' : 'application/json'
    return Promise.resolve(new Response(streams ? `data: ${text}\n\n` : text, { headers: { 'content-type': type } }))
  }
  const transport = new LegacyJsonRpcTransport({ endpoint: 'http://agent.example/', fetchImpl })
  // The answer of a call for its request alone is null, which the SDK refuses.
  const answer = await ask(transport, operation, params10).catch((error: unknown) => {
    if (result03 === null) return undefined
    throw error
  })
  return { requests, answer }
}

async function ask(transport: LegacyJsonRpcTransport, operation: SdkOperation, params: unknown): Promise<unknown> {
  switch (operation) {
    case 'send': {
      const result = await transport.sendMessage(SendMessageRequest.fromJSON(withMessage(params)))
      return 'messageId' in result ? { message: Message.toJSON(result) } : { task: Task.toJSON(result) }
    }
    case 'stream':
      return first(transport.sendMessageStream(SendMessageRequest.fromJSON(withMessage(params))))
    case 'resubscribe':
      return first(transport.resubscribeTask(SubscribeToTaskRequest.fromJSON(params)))
    case 'get':
      return Task.toJSON(await transport.getTask(GetTaskRequest.fromJSON(params)))
    case 'cancel':
      return Task.toJSON(await transport.cancelTask(CancelTaskRequest.fromJSON(params)))
    case 'push-create': {
      const config = TaskPushNotificationConfig.fromJSON(params)
      return TaskPushNotificationConfig.toJSON(await transport.createTaskPushNotificationConfig(config))
    }
    case 'push-get': {
      const reference = GetTaskPushNotificationConfigRequest.fromJSON(params)
      return TaskPushNotificationConfig.toJSON(await transport.getTaskPushNotificationConfig(reference))
    }
    case 'push-list': {
      const request = ListTaskPushNotificationConfigsRequest.fromJSON(params)
      return ListTaskPushNotificationConfigsResponse.toJSON(await transport.listTaskPushNotificationConfig(request))
    }
    default:
      await transport.deleteTaskPushNotificationConfig(DeleteTaskPushNotificationConfigRequest.fromJSON(params))
      return null
  }
}

function withMessage(params: unknown): unknown {
  return isJsonObject(params) && isJsonObject(params['message']) ? params : { message: { messageId: 'm' } }
}

async function first(events: AsyncGenerator<StreamResponse>): Promise<unknown> {
  for await (const event of events) return StreamResponse.toJSON(event)
  return undefined
}

async function serve(operation: SdkOperation, params03: unknown, result10: unknown) {
  const agent = new RecordingAgent(result10)
  const handler = new LegacyJsonRpcTransportHandler(agent)
  const request = { jsonrpc: '2.0', id: 1, method: METHODS[operation].names['0.3'], params: params03 }
  const reply = await handler.handle(request, new ServerCallContext())
  if (!(Symbol.asyncIterator in reply)) return { asked: agent.asked, answer: reply }
  for await (const answer of reply) return { asked: agent.asked, answer }
  return { asked: agent.asked, answer: undefined }
}

/** An agent of 1.0 behind the SDK's server. It records the params it was asked with, and gives one answer. */
class RecordingAgent implements A2ARequestHandler {
  asked: unknown
  readonly #result: unknown

  constructor(result: unknown) {
    this.#result = result
  }

  getAgentCard(): Promise<AgentCard> {
    return Promise.resolve(AgentCard.fromJSON({ capabilities: { streaming: true } }))
  }

  getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return this.getAgentCard()
  }

  sendMessage(params: SendMessageRequest): Promise<Message | Task> {
    this.asked = SendMessageRequest.toJSON(params)
    const { payload } = StreamResponse.fromJSON(this.#result ?? {})
    return Promise.resolve(payload?.$case === 'message' || payload?.$case === 'task' ? payload.value : this.#task())
  }

  async *sendMessageStream(params: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    this.asked = SendMessageRequest.toJSON(params)
    yield await Promise.resolve(StreamResponse.fromJSON(this.#result ?? { task: {} }))
  }

  async *resubscribe(params: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    this.asked = SubscribeToTaskRequest.toJSON(params)
    yield await Promise.resolve(StreamResponse.fromJSON(this.#result ?? { task: {} }))
  }

  getTask(params: GetTaskRequest): Promise<Task> {
    this.asked = GetTaskRequest.toJSON(params)
    return Promise.resolve(this.#task())
  }

  cancelTask(params: CancelTaskRequest): Promise<Task> {
    this.asked = CancelTaskRequest.toJSON(params)
    return Promise.resolve(this.#task())
  }

  createTaskPushNotificationConfig(params: TaskPushNotificationConfig): Promise<TaskPushNotificationConfig> {
    this.asked = TaskPushNotificationConfig.toJSON(params)
    return Promise.resolve(this.#pushConfig())
  }

  getTaskPushNotificationConfig(params: GetTaskPushNotificationConfigRequest): Promise<TaskPushNotificationConfig> {
    this.asked = GetTaskPushNotificationConfigRequest.toJSON(params)
    return Promise.resolve(this.#pushConfig())
  }

  listTaskPushNotificationConfigs(
    params: ListTaskPushNotificationConfigsRequest,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    this.asked = ListTaskPushNotificationConfigsRequest.toJSON(params)
    return Promise.resolve(ListTaskPushNotificationConfigsResponse.fromJSON(this.#result ?? {}))
  }

  deleteTaskPushNotificationConfig(params: DeleteTaskPushNotificationConfigRequest): Promise<void> {
    this.asked = DeleteTaskPushNotificationConfigRequest.toJSON(params)
    return Promise.resolve()
  }

  listTasks(): Promise<never> {
    return Promise.reject(new Error('0.3 has no list of tasks'))
  }

  #task(): Task {
    return Task.fromJSON(this.#result ?? {})
  }

  #pushConfig(): TaskPushNotificationConfig {
    return TaskPushNotificationConfig.fromJSON(this.#result ?? {})
  }
}
