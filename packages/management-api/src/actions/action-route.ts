import type { FastifyInstance } from 'fastify'

import { ACTION_NAMES, ACTION_ROLES } from '../route-table.ts'
import type { ActionParts, ActionRequest, serveAction } from './serve-action.ts'

/**
 * Adds `POST /api/actions/{action}`, one route for each action.
 * @param load Loads the function that runs the actions
 */
export function addActionRoutes(
  app: FastifyInstance,
  parts: ActionParts,
  load: () => Promise<typeof serveAction>,
): void {
  for (const name of ACTION_NAMES) {
    const onRequest = parts.admission.hook(ACTION_ROLES[name], name)
    app.post(`/api/actions/${name}`, { onRequest }, async (request: ActionRequest, reply) => {
      const serve = await load()
      return serve(name, request, reply, parts)
    })
  }
}
