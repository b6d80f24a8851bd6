import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from './route.ts'

const json = (description: string) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true, description })

export const toolsRoute = defineManagementRoute({
  path: '/api/tools',
  summary: 'The tools of /mcp, with the JSON Schemas of their arguments and results. call_tool calls one.',
  query: Type.Object({}, STRICT),
  data: Type.Object({
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
