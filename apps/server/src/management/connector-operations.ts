import { BrokerError } from '@signalbox/broker-core'
import type { A2aConnector } from '@signalbox/connector-a2a'
import type { McpOperations } from '@signalbox/connector-mcp'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import type { ManagementServices, ToolsPort } from '@signalbox/management-api'

/** The parts of the connectors that operators use. The connectors that are turned off set none. */
export class ConnectorOperations {
  mcp: McpOperations | undefined
  streams: A2aConnector['streams'] | undefined

  /** Returns the parts as services of the management API. */
  services(): Pick<ManagementServices, 'tasks' | 'streams' | 'tools'> {
    const { mcp, streams } = this
    return {
      ...(mcp === undefined ? {} : { tools: toolsOf(mcp) }),
      ...(mcp?.tasks === undefined ? {} : { tasks: mcp.tasks }),
      ...(streams === undefined ? {} : { streams }),
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
      const structured: unknown = typeof content === 'string' ? JSON.parse(content) : content
      return {
        text,
        isError,
        ...(structured === undefined ? {} : { structured }),
        ...(settlement === undefined ? {} : { settlement }),
      }
    },
  }
}

/** Returns the error for the operator; undefined for another error. */
function invalidArguments(error: unknown): BrokerError | undefined {
  if (!(error instanceof JsonRpcError) || error.code !== JSON_RPC_CODES.INVALID_PARAMS) return undefined
  return new BrokerError('ARGUMENT_INVALID', error.message, {}, { cause: error })
}
