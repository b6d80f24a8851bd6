import { setTimeout as pause } from 'node:timers/promises'

import { JsonRpcError } from '@signalbox/http-kit'

import type { TaskHandling, Tool, ToolContext, ToolOutcome } from '../../packages/connector-mcp/src/tools/tool.ts'
import { MCP_CODES } from '../../packages/connector-mcp/src/wire/2026-07-28.ts'

/** The schema of the scenario `json-schema-2020-12`: its keywords have to reach clients unchanged. */
const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- A keyword of JSON Schema.
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
} as const

const NO_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: false } as const

type Call = (context: ToolContext, args: unknown) => ToolOutcome | Promise<ToolOutcome>

/** Returns a tool with the name and the effect that scenarios of the suite require. */
export function fixture(
  name: string,
  call: Call,
  inputSchema: Tool['definition']['inputSchema'] = NO_ARGUMENTS,
  onTask?: TaskHandling,
): Tool {
  return {
    definition: {
      name,
      title: name,
      description: 'A tool of the conformance suite.',
      inputSchema,
      outputSchema: { type: 'object', properties: {} },
      annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    },
    needs: { action: 'list', patterns: ['queues'] },
    ownTimeout: true,
    onDisconnect: 'run-on',
    ...(onTask === undefined ? {} : { onTask }),
    call: async (args, context) => call(context, args),
  }
}

export function text(said: string): ToolOutcome {
  return { text: said, isError: false, structuredContent: {} }
}

/** The tools of the scenarios without tasks. */
export const FIXTURE_TOOLS: readonly Tool[] = [
  fixture('test_simple_text', () => text('This is a simple text response for testing.')),
  fixture('test_error_handling', () => ({
    text: 'This tool intentionally returns an error for testing',
    isError: true,
  })),
  fixture('test_tool_with_progress', async (context) => {
    for (const step of [0, 50, 100]) {
      context.progress(`${step} of 100`)
      await pause(50)
    }
    return text('done')
  }),
  // The connector sends no log messages, so that none appears without a log level.
  fixture('test_logging_tool', () => text('nothing was logged')),
  fixture('test_missing_capability', () => {
    throw new JsonRpcError(MCP_CODES.MISSING_CLIENT_CAPABILITY, 'this tool needs the client capability sampling', {
      data: { requiredCapabilities: { sampling: {} } },
    })
  }),
  fixture('json_schema_2020_12_tool', () => text('done'), SCHEMA),
]
