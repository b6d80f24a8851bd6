import { hasRole, ROLES } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from './route.ts'

export const operatorRoute = defineManagementRoute({
  path: '/api/operator',
  summary: 'The caller of this request and its roles.',
  query: Type.Object({}, STRICT),
  data: Type.Object({
    client: Type.String({ description: 'The ClientID of the caller.' }),
    roles: Type.Array(Type.Unsafe<(typeof ROLES)[number]>({ type: 'string', enum: [...ROLES] }), {
      description: 'The roles of the caller, including those that its highest role contains.',
    }),
  }),
  run: (_query, { operator }) => ({
    client: operator.clientId,
    roles: ROLES.filter((role) => hasRole(operator, role)),
  }),
})
