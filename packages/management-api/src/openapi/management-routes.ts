import type { DocumentedResponse, DocumentedRoute } from '@signalbox/http-kit/internal'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'

import { SIGN_IN_ROUTE } from '../console/sign-in.ts'
import { failureSchema, successSchema } from '../envelope.ts'
import { monitorQuery } from '../monitor/monitored-messages.ts'
import { MONITOR_PATHS } from '../monitor/monitor-routes.ts'
import { ACTION_NAMES, ACTION_ROLES, READING_PATHS, READING_ROLE } from '../route-table.ts'
import { actionOf, readingRoute } from '../operations.ts'

const REFUSALS: Readonly<Record<string, DocumentedResponse>> = {
  401: { description: 'The credentials are missing or could not be verified.', schema: failureSchema },
  403: { description: 'The origin is not trusted, or the caller does not have the role.', schema: failureSchema },
}

function enveloped(data: TSchema): Readonly<Record<string, DocumentedResponse>> {
  return {
    200: {
      description: 'Success, or with `error: true` a valid request that cannot be executed.',
      schema: Type.Union([successSchema(data), failureSchema]),
    },
    ...REFUSALS,
  }
}

function streamed(events: TSchema): Readonly<Record<string, DocumentedResponse>> {
  return {
    200: {
      description: 'Server-sent events, or JSON with `error: true` for a valid request that cannot be executed.',
      schema: failureSchema,
      events,
    },
    ...REFUSALS,
  }
}

const NO_ENVELOPE = { listener: 'management' } as const

/** Every route of the management listener, and the probes of the shared listener. */
export const MANAGEMENT_ROUTES: readonly DocumentedRoute[] = [
  ...(['management', 'shared'] as const).flatMap((listener): readonly DocumentedRoute[] => [
    {
      method: 'GET',
      path: '/ping',
      listener,
      tag: 'Probes',
      summary: 'Answers as long as the process serves HTTP.',
      isPublic: true,
      responses: { 200: { description: '`pong`', mediaType: 'text/plain', schema: Type.String() } },
    },
    {
      method: 'GET',
      path: '/health',
      listener,
      tag: 'Probes',
      summary: 'Reports whether the engine works.',
      isPublic: true,
      responses: {
        200: { description: '`healthy`', mediaType: 'text/plain', schema: Type.String() },
        500: { description: '`not healthy`', mediaType: 'text/plain', schema: Type.String() },
      },
    },
    {
      method: 'GET',
      path: '/ready',
      listener,
      tag: 'Probes',
      summary: 'Reports whether the node accepts calls, with the failed checks.',
      isPublic: true,
      responses: {
        200: { description: 'Ready.', schema: healthState() },
        503: { description: 'Not ready.', schema: healthState() },
      },
    },
  ]),
  {
    ...NO_ENVELOPE,
    method: 'GET',
    path: '/metrics',
    tag: 'Metrics',
    summary: 'The metrics, in the text format of Prometheus.',
    role: 'ReadOnly',
    responses: {
      200: { description: 'The metrics.', mediaType: 'text/plain', schema: Type.String() },
      ...REFUSALS,
    },
  },
  {
    ...NO_ENVELOPE,
    method: 'GET',
    path: '/openapi.json',
    tag: 'Documentation',
    summary: 'This document.',
    role: 'ReadOnly',
    responses: { 200: { description: 'OpenAPI 3.1.', schema: Type.Object({ openapi: Type.String() }) }, ...REFUSALS },
  },
  SIGN_IN_ROUTE,
  ...READING_PATHS.flatMap((paths) => {
    const { summary, input: query, output } = readingRoute(paths[0])
    return paths.map((path): DocumentedRoute => ({
      method: 'GET',
      path,
      listener: 'management',
      tag: path.includes('/stats/') ? 'Statistics' : 'Insight',
      summary,
      role: READING_ROLE,
      query,
      responses: enveloped(output),
    }))
  }),
  ...MONITOR_PATHS.map((path): DocumentedRoute => ({
    method: 'GET',
    path,
    listener: 'management',
    tag: 'Monitor',
    summary:
      'A WebSocket that shows messages live, as JSON text frames. The client may send start and stop. A browser sends its token as the subprotocol signalbox.bearer.TOKEN, with signalbox.monitor.',
    role: 'ReadOnly',
    query: monitorQuery,
    responses: {
      101: { description: 'The WebSocket is open.' },
      ...REFUSALS,
      500: {
        description: 'The WebSocket cannot be opened; `error_string` contains the reason.',
        schema: failureSchema,
      },
    },
  })),
  ...ACTION_NAMES.map(actionOf).map(({ name, summary, input, output, answersEvents }): DocumentedRoute => ({
    method: 'POST',
    path: `/api/actions/${name}`,
    listener: 'management',
    tag: 'Actions',
    summary,
    role: ACTION_ROLES[name],
    body: { mediaType: 'application/json', schema: input },
    responses: {
      ...(answersEvents ? streamed(output) : enveloped(output)),
      400: { description: 'The body is not JSON in UTF-8.', schema: failureSchema },
      413: { description: 'The body is too large.', schema: failureSchema },
      415: { description: 'The body is not application/json, or it is encoded.', schema: failureSchema },
    },
  })),
]

function healthState() {
  return Type.Object({
    ready: Type.Boolean(),
    healthy: Type.Boolean(),
    node: Type.String(),
    version: Type.String(),
    engine: Type.String(),
    uptime_seconds: Type.Number({ minimum: 0 }),
    checks: Type.Array(Type.Object({ name: Type.String(), ok: Type.Boolean(), detail: Type.String() })),
  })
}
