import type {
  Message,
  MessageSendParams,
  Part,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatusUpdateEvent,
} from 'a2a-js-sdk-v03'
import type { Client } from 'a2a-js-sdk-v03/client'
import { ClientFactory } from 'a2a-js-sdk-v03/client'

import type { Content } from '../agents/script.ts'
import type { OfficialClient, Outgoing, PushConfig, Result } from './client.ts'
import { userMessageId } from './client.ts'

function part(content: Content): Part {
  if ('text' in content) return { kind: 'text', text: content.text }
  if ('data' in content) return { kind: 'data', data: content.data }
  const { name, mediaType: mimeType } = content
  if ('bytes' in content) return { kind: 'file', file: { bytes: content.bytes, name, mimeType } }
  return { kind: 'file', file: { uri: content.uri, name, mimeType } }
}

function request(outgoing: Outgoing): MessageSendParams {
  const { taskId, contextId, metadata, extensions, referenceTaskIds, immediately, historyLength, push } = outgoing
  return {
    message: {
      kind: 'message',
      messageId: userMessageId(),
      role: 'user',
      parts: outgoing.parts.map(part),
      ...(taskId !== undefined && { taskId }),
      ...(contextId !== undefined && { contextId }),
      ...(metadata !== undefined && { metadata }),
      ...(extensions !== undefined && { extensions: [...extensions] }),
      ...(referenceTaskIds !== undefined && { referenceTaskIds: [...referenceTaskIds] }),
    },
    configuration: {
      blocking: immediately !== true,
      ...(historyLength !== undefined && { historyLength }),
      ...(push !== undefined && { pushNotificationConfig: pushConfig(push) }),
    },
  }
}

function pushConfig({ id, url, token, authentication }: PushConfig) {
  const { scheme, credentials } = authentication ?? {}
  return {
    id,
    url,
    ...(token !== undefined && { token }),
    ...(scheme !== undefined && credentials !== undefined && { authentication: { schemes: [scheme], credentials } }),
  }
}

function result(view: Message | Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent): Result {
  return { taskId: view.kind === 'task' ? view.id : (view.taskId ?? ''), view }
}

async function* events(stream: AsyncIterable<Parameters<typeof result>[0]>): AsyncGenerator<Result> {
  for await (const event of stream) yield result(event)
}

/** Connects with the SDK for A2A 0.3 as its README has it: the URL of the agent and nothing else. */
export async function connect03(url: string): Promise<OfficialClient> {
  return wrap03(await new ClientFactory().createFromUrl(url))
}

/** Wraps a client of the SDK. */
export function wrap03(client: Client): OfficialClient {
  return {
    send: async (message) => result(await client.sendMessage(request(message))),
    stream: (message, signal) => events(client.sendMessageStream(request(message), signal && { signal })),
    get: async (id, historyLength) =>
      result(await client.getTask(historyLength === undefined ? { id } : { id, historyLength })),
    list: async () => 'A2A 0.3 lists no tasks',
    cancel: async (id) => result(await client.cancelTask({ id })),
    resubscribe: (id, signal) => events(client.resubscribeTask({ id }, signal && { signal })),
    setPush: async (taskId, config) =>
      client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: pushConfig(config) }),
    getPush: async (id, pushNotificationConfigId) => {
      // The SDK's type has no member for the configuration; its agents read one.
      const params = { id, pushNotificationConfigId }
      return client.getTaskPushNotificationConfig(params)
    },
    listPush: async (id) => client.listTaskPushNotificationConfig({ id }),
    deletePush: async (id, pushNotificationConfigId) =>
      (await client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId })) ?? 'deleted',
    skills: async () => (await client.getAgentCard()).skills.map(({ name }) => name),
  }
}
