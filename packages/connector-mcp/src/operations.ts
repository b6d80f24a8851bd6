import type { Broker } from '@signalbox/broker-core'
import type { AgentDirectory } from '@signalbox/broker-core/ports'

import type { TaskHistory, TaskOverview } from './tasks/task-index.ts'
import type { TaskRequests } from './tasks/task-requests.ts'
import type { Tasks } from './tasks/tasks.ts'
import type { Tool, ToolContext, ToolDefinition, ToolOutcome } from './tools/tool.ts'

/** The tasks of all nodes, for operators. */
export interface TaskOperations {
  list(): readonly TaskOverview[]
  /**
   * Cancels a task for its owner, and informs the agent that works on it. Returns the state of the task; undefined if
   * there is no such task.
   */
  cancel(id: string): Promise<TaskOverview | undefined>
}

/** The tools and the tasks of the endpoint, for operators. */
export interface McpOperations {
  tools(): readonly ToolDefinition[]
  /**
   * Calls a tool without a client of MCP; undefined if there is no such tool. The call never becomes a task.
   * @throws JsonRpcError -32602 for invalid arguments
   */
  callTool(
    name: string,
    args: unknown,
    context: Pick<ToolContext, 'broker' | 'signal' | 'hold'>,
  ): Promise<ToolOutcome | undefined>
  /** Undefined if calls cannot become tasks. */
  readonly tasks: TaskOperations | undefined
}

interface OperationParts {
  readonly broker: Broker
  readonly agents: AgentDirectory | undefined
  readonly maxAnswerBytes: number
  readonly tools: ReadonlyMap<string, Tool>
  readonly tasks: { readonly tasks: Tasks; readonly requests: TaskRequests } | undefined
}

export function mcpOperations({ broker, agents, maxAnswerBytes, tools, tasks }: OperationParts): McpOperations {
  return {
    tools: () => [...tools.values()].map(({ definition }) => definition),
    callTool: async (name, args, { broker: caller, signal, hold }) => {
      const context: ToolContext = {
        broker: caller,
        maxAnswerBytes,
        signal,
        hold,
        callerGone: signal,
        traceContext: {},
        hops: 0,
        agents,
        wantsProgress: false,
        progress() {},
        allowTask: () => false,
        mayAsk: false,
      }
      return tools.get(name)?.call(args, context)
    },
    tasks: tasks && taskOperations(broker, agents, tasks.tasks, tasks.requests),
  }
}

function taskOperations(
  broker: Broker,
  agents: AgentDirectory | undefined,
  tasks: Tasks,
  requests: TaskRequests,
): TaskOperations {
  const history: TaskHistory = tasks.history
  return {
    list: () => history.list(),
    async cancel(id) {
      const task = await tasks.find(id)
      if (task === undefined) return undefined
      const { principal: clientId, account } = task.record
      const owner = broker.as({ clientId, account })
      await requests.cancel(id, { broker: owner, agents, traceContext: {}, hops: 0 }, 'an operator cancelled the task')
      return history.get(id)
    },
  }
}
