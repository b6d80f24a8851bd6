import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from './route.ts'

export const configRoute = defineManagementRoute({
  path: '/api/config',
  summary: 'The effective configuration, by the keys of the configuration file; secrets are masked.',
  query: Type.Object({}, STRICT),
  data: Type.Unsafe<object>({ type: 'object' }),
  run: (_query, { environment }) => environment.config(),
})
