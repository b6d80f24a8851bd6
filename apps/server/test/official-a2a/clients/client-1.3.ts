import type { StreamResponse as StreamResponseType } from '@a2a-js/sdk'
import {
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
  type AgentCard,
  type SendMessageResult,
} from '@a2a-js/sdk'
import type { AgentCardResolver, Client } from '@a2a-js/sdk/client'
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'

import type { Content } from '../agents/script.ts'
import type { OfficialClient, Outgoing, PushConfig, Result } from './client.ts'
import { userMessageId } from './client.ts'

/** Connects with the SDK for A2A 1.0 as its README has it: the URL of the agent and nothing else. */
export async function connect10(url: string): Promise<OfficialClient> {
  return wrap10(await new ClientFactory().createFromUrl(url))
}

/** Connects with the SDK for A2A 1.0 to the HTTP+JSON interface of an agent. */
export async function connectRest(url: string): Promise<OfficialClient> {
  return wrap10(await new ClientFactory({ transports: [new RestTransportFactory()] }).createFromUrl(url))
}

/** Asks for the card of A2A 0.3, and chooses the interface of that version where a card has both. */
class LegacyCardResolver implements AgentCardResolver {
  readonly #resolver = new DefaultAgentCardResolver({
    legacyCompat: { enabled: true },
    fetchImpl: (url) => fetch(url, { headers: { 'A2A-Version': '0.3' } }),
  })

  async resolve(url: string, path?: string): Promise<AgentCard> {
    const card = await this.#resolver.resolve(url, path)
    const supportedInterfaces = card.supportedInterfaces.filter(({ protocolVersion }) =>
      protocolVersion.startsWith('0.3'),
    )
    return { ...card, supportedInterfaces }
  }
}

/** Connects with the SDK for A2A 1.0 in its mode for agents of A2A 0.3. */
export async function connectLegacy(url: string): Promise<OfficialClient> {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ legacyCompat: { enabled: true } })],
    cardResolver: new LegacyCardResolver(),
  })
  return wrap10(await new ClientFactory(options).createFromUrl(url))
}

function part(content: Content): object {
  if ('text' in content) return { text: content.text }
  if ('data' in content) return { data: content.data }
  const { name: filename, mediaType } = content
  return 'bytes' in content ? { raw: content.bytes, filename, mediaType } : { url: content.uri, filename, mediaType }
}

function request({ parts, immediately, historyLength, push, ...message }: Outgoing): SendMessageRequest {
  const taskPushNotificationConfig = push && { ...push, taskId: message.taskId }
  return SendMessageRequest.fromJSON({
    message: { ...message, messageId: userMessageId(), role: 'ROLE_USER', parts: parts.map(part) },
    configuration: { returnImmediately: immediately, historyLength, taskPushNotificationConfig },
  })
}

function taskResult(task: Task): Result {
  return { taskId: task.id, view: Task.toJSON(task) }
}

function sendResult(result: SendMessageResult): Result {
  if (!('messageId' in result)) return { taskId: result.id, view: { task: Task.toJSON(result) } }
  return { taskId: result.taskId, view: { message: Message.toJSON(result) } }
}

async function* events(stream: AsyncIterable<StreamResponseType>): AsyncGenerator<Result> {
  for await (const event of stream) {
    const { payload } = event
    const taskId = payload?.$case === 'task' ? payload.value.id : (payload?.value.taskId ?? '')
    yield { taskId, view: StreamResponse.toJSON(event) }
  }
}

const TENANT = { tenant: '' }

/** Wraps a client of the SDK. */
export function wrap10(client: Client): OfficialClient {
  return {
    send: async (message) => sendResult(await client.sendMessage(request(message))),
    stream: (message, signal) => events(client.sendMessageStream(request(message), signal && { signal })),
    get: async (id, historyLength) => taskResult(await client.getTask({ ...TENANT, id, historyLength })),
    list: async (contextId) => {
      const status = 0
      const response = await client.listTasks({
        ...TENANT,
        contextId,
        status,
        pageToken: '',
        statusTimestampAfter: undefined,
      })
      return ListTasksResponse.toJSON(response)
    },
    cancel: async (id) => taskResult(await client.cancelTask({ ...TENANT, id, metadata: undefined })),
    resubscribe: (id, signal) => events(client.resubscribeTask({ ...TENANT, id }, signal && { signal })),
    setPush: async (taskId, config) => viewPush(await client.createTaskPushNotificationConfig(push(taskId, config))),
    getPush: async (taskId, id) => viewPush(await client.getTaskPushNotificationConfig({ ...TENANT, taskId, id })),
    listPush: async (taskId) => {
      const all = { ...TENANT, taskId, pageSize: 0, pageToken: '' }
      return (await client.listTaskPushNotificationConfig(all)).configs.map(viewPush)
    },
    deletePush: async (taskId, id) =>
      (await client.deleteTaskPushNotificationConfig({ ...TENANT, taskId, id })) ?? 'deleted',
    skills: async () => (await client.getAgentCard()).skills.map(({ name }) => name),
  }
}

function push(taskId: string, config: PushConfig): TaskPushNotificationConfig {
  return TaskPushNotificationConfig.fromJSON({ ...config, taskId })
}

function viewPush(config: TaskPushNotificationConfig): unknown {
  return TaskPushNotificationConfig.toJSON(config)
}
