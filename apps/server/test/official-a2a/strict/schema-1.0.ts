import type { Schema } from './validate.ts'

const STATES = [
  'SUBMITTED',
  'WORKING',
  'COMPLETED',
  'FAILED',
  'CANCELED',
  'INPUT_REQUIRED',
  'REJECTED',
  'AUTH_REQUIRED',
] as const

/** The messages of A2A 1.0 as a parser of protocol buffers reads their JSON: members that it does not know are errors. */
export const SCHEMA_10: Schema = {
  SendMessageResponse: { members: { task: 'Task', message: 'Message' }, oneOf: ['task', 'message'] },
  StreamResponse: {
    members: {
      task: 'Task',
      message: 'Message',
      statusUpdate: 'TaskStatusUpdateEvent',
      artifactUpdate: 'TaskArtifactUpdateEvent',
    },
    oneOf: ['task', 'message', 'statusUpdate', 'artifactUpdate'],
  },
  Task: {
    members: {
      id: 'string!',
      contextId: 'string',
      status: 'TaskStatus!',
      artifacts: 'Artifact[]',
      history: 'Message[]',
      metadata: 'object',
    },
  },
  TaskStatus: { members: { state: 'TaskState!', message: 'Message', timestamp: 'time' } },
  TaskState: { values: STATES.map((name) => `TASK_STATE_${name}`) },
  Role: { values: ['ROLE_USER', 'ROLE_AGENT'] },
  Message: {
    members: {
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
  Part: {
    members: {
      text: 'string',
      raw: 'bytes',
      url: 'string',
      data: 'any',
      metadata: 'object',
      filename: 'string',
      mediaType: 'string',
    },
    oneOf: ['text', 'raw', 'url', 'data'],
  },
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
    members: { taskId: 'string!', contextId: 'string!', status: 'TaskStatus!', metadata: 'object' },
  },
  TaskArtifactUpdateEvent: {
    members: {
      taskId: 'string!',
      contextId: 'string!',
      artifact: 'Artifact!',
      append: 'bool',
      lastChunk: 'bool',
      metadata: 'object',
    },
  },
  ListTasksResponse: {
    members: { tasks: 'Task[]!', nextPageToken: 'string!', pageSize: 'int!', totalSize: 'int!' },
  },
  TaskPushNotificationConfig: {
    members: {
      tenant: 'string',
      id: 'string',
      taskId: 'string',
      url: 'string!',
      token: 'string',
      authentication: 'AuthenticationInfo',
    },
  },
  AuthenticationInfo: { members: { scheme: 'string!', credentials: 'string' } },
  ListTaskPushNotificationConfigsResponse: {
    members: { configs: 'TaskPushNotificationConfig[]', nextPageToken: 'string' },
  },
  AgentCard: {
    members: {
      name: 'string!',
      description: 'string!',
      supportedInterfaces: 'AgentInterface[]!',
      provider: 'AgentProvider',
      version: 'string!',
      documentationUrl: 'string',
      capabilities: 'AgentCapabilities!',
      securitySchemes: 'SecurityScheme{}',
      securityRequirements: 'SecurityRequirement[]',
      defaultInputModes: 'string[]!',
      defaultOutputModes: 'string[]!',
      skills: 'AgentSkill[]!',
      signatures: 'AgentCardSignature[]',
      iconUrl: 'string',
    },
  },
  AgentInterface: {
    members: { url: 'string!', protocolBinding: 'string!', protocolVersion: 'string!', tenant: 'string' },
  },
  AgentProvider: { members: { url: 'string!', organization: 'string!' } },
  AgentCapabilities: {
    members: {
      streaming: 'bool',
      pushNotifications: 'bool',
      extendedAgentCard: 'bool',
      extensions: 'AgentExtension[]',
    },
  },
  AgentExtension: { members: { uri: 'string', description: 'string', required: 'bool', params: 'object' } },
  AgentSkill: {
    members: {
      id: 'string!',
      name: 'string!',
      description: 'string!',
      tags: 'string[]!',
      examples: 'string[]',
      inputModes: 'string[]',
      outputModes: 'string[]',
      securityRequirements: 'SecurityRequirement[]',
    },
  },
  SecurityRequirement: { members: { schemes: 'StringList{}' } },
  StringList: { members: { list: 'string[]' } },
  SecurityScheme: { members: { httpAuthSecurityScheme: 'HTTPAuthSecurityScheme' }, oneOf: ['httpAuthSecurityScheme'] },
  HTTPAuthSecurityScheme: { members: { description: 'string', scheme: 'string!', bearerFormat: 'string' } },
  AgentCardSignature: { members: { protected: 'string!', signature: 'string!', header: 'object' } },
}

/** The type of the result of each method. */
export const RESULTS_10: Readonly<Record<string, string>> = {
  SendMessage: 'SendMessageResponse',
  SendStreamingMessage: 'StreamResponse',
  SubscribeToTask: 'StreamResponse',
  GetTask: 'Task',
  CancelTask: 'Task',
  ListTasks: 'ListTasksResponse',
  CreateTaskPushNotificationConfig: 'TaskPushNotificationConfig',
  GetTaskPushNotificationConfig: 'TaskPushNotificationConfig',
  ListTaskPushNotificationConfigs: 'ListTaskPushNotificationConfigsResponse',
  GetExtendedAgentCard: 'AgentCard',
}
