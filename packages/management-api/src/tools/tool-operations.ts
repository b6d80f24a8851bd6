import type { TextParts } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineAction, defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'

const json = (description: string) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true, description })

const toolsRoute = defineManagementRoute({
  name: '/api/tools',
  summary: 'The tools of /mcp, with the JSON Schemas of their arguments and results. call_tool calls one.',
  input: Type.Object({}, STRICT),
  output: Type.Object({
    items: Type.Array(
      Type.Object({
        name: Type.String(),
        title: Type.String(),
        description: Type.String(),
        input_schema: json('The JSON Schema of the arguments.'),
        output_schema: json('The JSON Schema of the structured result.'),
        annotations: json('The hints of MCP, such as readOnlyHint.'),
      }),
    ),
  }),
  run(_query, { services }) {
    const items = (services.tools?.list() ?? []).map((tool) => ({
      name: tool.name,
      title: tool.title,
      description: tool.description,
      input_schema: { ...tool.inputSchema },
      output_schema: { ...tool.outputSchema },
      annotations: { ...tool.annotations },
    }))
    return { items }
  },
})

const callTool = defineAction({
  name: 'call_tool',
  summary:
    'Calls a tool of /mcp in the name of the operator, whose role decides instead of the policy. A tool that fails is a success with `is_error`.',
  input: Type.Object(
    {
      name: Type.String({
        description: 'The name of the tool; /api/tools lists the tools.',
        minLength: 1,
        maxLength: 128,
      }),
      arguments: Type.Optional(
        Type.Unsafe<Readonly<Record<string, unknown>>>({
          type: 'object',
          additionalProperties: true,
          description: 'The arguments of the tool.',
          default: {},
        }),
      ),
    },
    STRICT,
  ),
  output: Type.Object({
    name: Type.String(),
    is_error: Type.Boolean({ description: 'True if the tool failed; text says why.' }),
    text: Type.Unsafe<string | TextParts>({ type: 'string', description: 'The text of the result.' }),
    structured: Type.Optional(Type.Unknown({ description: 'The structured result, according to the output schema.' })),
    milliseconds: Type.Integer({ minimum: 0, description: 'The time that the call took.' }),
  }),
  async run({ name, arguments: args = {} }, call) {
    const { broker, hold, services, signal, maxWaitMs } = call
    const startedAt = performance.now()
    const result = await services.tools?.call(name, args, {
      broker,
      hold,
      signal: AbortSignal.any([signal, AbortSignal.timeout(maxWaitMs)]),
    })
    if (result === undefined) {
      throw new ManagementError(
        'TOOL_NOT_FOUND',
        `there is no tool ${JSON.stringify(name)}; /api/tools lists the tools`,
        { name },
      )
    }
    call.settleLater(result.settlement)
    const { isError, text, structured } = result
    return {
      name,
      is_error: isError,
      text,
      structured,
      milliseconds: Math.round(performance.now() - startedAt),
    }
  },
  detail: ({ name, is_error: isError }) => `tool ${name} ${isError ? 'failed' : 'succeeded'}`,
})

export const toolOperations: readonly Operation[] = [toolsRoute, callTool]
