import { BrokerError } from '@signalbox/broker-core'
import type { A2aConnector } from '@signalbox/connector-a2a'
import type { McpOperations } from '@signalbox/connector-mcp'
import { JSON_RPC_CODES, JsonRpcError, TextParts } from '@signalbox/http-kit'
import type { AgentCallsPort, ManagementServices, ToolsPort } from '@signalbox/management-api'

/** The parts of the connectors that operators use. The connectors that are turned off set none. */
export class ConnectorOperations {
  mcp: McpOperations | undefined
  streams: A2aConnector['streams'] | undefined
  calls: A2aConnector['calls'] | undefined

  /** Returns the parts as services of the management API. */
  services(): Pick<ManagementServices, 'tasks' | 'streams' | 'tools' | 'agentCalls'> {
    const { calls, mcp, streams } = this
    return {
      ...(mcp === undefined ? {} : { tools: toolsOf(mcp) }),
      ...(mcp?.tasks === undefined ? {} : { tasks: mcp.tasks }),
      ...(streams === undefined ? {} : { streams }),
      ...(calls === undefined ? {} : { agentCalls: agentCallsOf(calls) }),
    }
  }
}

function toolsOf(mcp: McpOperations): ToolsPort {
  return {
    list: () => mcp.tools(),
    async call(name, args, context) {
      const outcome = await mcp.callTool(name, args, context).catch((error: unknown) => {
        throw invalidArguments(error) ?? error
      })
      if (outcome === undefined) return undefined
      const { text, isError, structuredContent: content, settlement } = outcome
      const structured: unknown =
        typeof content === 'string' || content instanceof TextParts ? JSON.parse(String(content)) : content
      return {
        text,
        isError,
        ...(structured === undefined ? {} : { structured }),
        ...(settlement === undefined ? {} : { settlement }),
      }
    },
  }
}

function agentCallsOf(calls: A2aConnector['calls']): AgentCallsPort {
  return {
    async open({ operator, ...call }) {
      try {
        return await calls.open({ ...call, caller: operator })
      } catch (error) {
        if (call.signal.aborted && error === call.signal.reason) return TIMED_OUT
        if (!(error instanceof JsonRpcError)) throw error
        if (error.code === JSON_RPC_CODES.AGENT_NOT_FOUND) return undefined
        return { rpcCode: error.code, message: error.message }
      }
    },
  }
}

/** The client may have disconnected as well; it gets no answer then. */
const TIMED_OUT = { rpcCode: JSON_RPC_CODES.AGENT_TIMEOUT, message: 'agent timeout' }

/** Returns the error for the operator; undefined for another error. */
function invalidArguments(error: unknown): BrokerError | undefined {
  if (!(error instanceof JsonRpcError) || error.code !== JSON_RPC_CODES.INVALID_PARAMS) return undefined
  return new BrokerError('ARGUMENT_INVALID', error.message, {}, { cause: error })
}
