import type { Schema } from './validate.ts'

/** The objects of A2A 0.3, whose kinds a strict reader demands. */
export const SCHEMA_03: Schema = {
  Event: {
    kinds: {
      task: 'Task',
      message: 'Message',
      'status-update': 'TaskStatusUpdateEvent',
      'artifact-update': 'TaskArtifactUpdateEvent',
    },
  },
  Task: {
    members: {
      kind: '=task!',
      id: 'string!',
      contextId: 'string!',
      status: 'TaskStatus!',
      artifacts: 'Artifact[]',
      history: 'Message[]',
      metadata: 'object',
    },
  },
  TaskStatus: { members: { state: 'TaskState!', message: 'Message', timestamp: 'time' } },
  TaskState: {
    values: [
      'submitted',
      'working',
      'input-required',
      'completed',
      'canceled',
      'failed',
      'rejected',
      'auth-required',
      'unknown',
    ],
  },
  Role: { values: ['user', 'agent'] },
  Message: {
    members: {
      kind: '=message!',
      messageId: 'string!',
      contextId: 'string',
      taskId: 'string',
      role: 'Role!',
      parts: 'Part[]!',
      metadata: 'object',
      extensions: 'string[]',
      referenceTaskIds: 'string[]',
    },
  },
  Part: { kinds: { text: 'TextPart', file: 'FilePart', data: 'DataPart' } },
  TextPart: { members: { kind: '=text!', text: 'string!', metadata: 'object' } },
  FilePart: { members: { kind: '=file!', file: 'File!', metadata: 'object' } },
  File: {
    members: { bytes: 'bytes', uri: 'string', name: 'string', mimeType: 'string' },
    oneOf: ['bytes', 'uri'],
  },
  DataPart: { members: { kind: '=data!', data: 'object!', metadata: 'object' } },
  Artifact: {
    members: {
      artifactId: 'string!',
      name: 'string',
      description: 'string',
      parts: 'Part[]!',
      metadata: 'object',
      extensions: 'string[]',
    },
  },
  TaskStatusUpdateEvent: {
    members: {
      kind: '=status-update!',
      taskId: 'string!',
      contextId: 'string!',
      status: 'TaskStatus!',
      final: 'bool!',
      metadata: 'object',
    },
  },
  TaskArtifactUpdateEvent: {
    members: {
      kind: '=artifact-update!',
      taskId: 'string!',
      contextId: 'string!',
      artifact: 'Artifact!',
      append: 'bool',
      lastChunk: 'bool',
      metadata: 'object',
    },
  },
  TaskPushNotificationConfig: {
    members: { taskId: 'string!', pushNotificationConfig: 'PushNotificationConfig!' },
  },
  PushNotificationConfig: {
    members: { id: 'string', url: 'string!', token: 'string', authentication: 'PushNotificationAuthenticationInfo' },
  },
  PushNotificationAuthenticationInfo: { members: { schemes: 'string[]!', credentials: 'string' } },
  AgentCard: {
    members: {
      protocolVersion: 'string!',
      name: 'string!',
      description: 'string!',
      version: 'string!',
      url: 'string!',
      preferredTransport: '=JSONRPC!',
      capabilities: 'object!',
      defaultInputModes: 'string[]!',
      defaultOutputModes: 'string[]!',
      skills: 'AgentSkill[]!',
    },
    open: true,
  },
  AgentSkill: { members: { id: 'string!', name: 'string!', description: 'string!', tags: 'string[]!' }, open: true },
}

/** The type of the result of each method. */
export const RESULTS_03: Readonly<Record<string, string>> = {
  'message/send': 'Event',
  'message/stream': 'Event',
  'tasks/resubscribe': 'Event',
  'tasks/get': 'Task',
  'tasks/cancel': 'Task',
  'tasks/pushNotificationConfig/set': 'TaskPushNotificationConfig',
  'tasks/pushNotificationConfig/get': 'TaskPushNotificationConfig',
  'tasks/pushNotificationConfig/list': 'TaskPushNotificationConfig[]',
  'agent/getAuthenticatedExtendedCard': 'AgentCard',
}
