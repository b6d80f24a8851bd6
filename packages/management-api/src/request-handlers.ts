/**
 * The parts that answer requests: routes, actions and the OpenAPI document. Probes and messages do
 * not need them, so they are loaded at the first request.
 */
export { openApiDocument } from './openapi/document.ts'
export { MANAGEMENT_ROUTES } from './openapi/management-routes.ts'
export { serveAction, serveRoute } from './serve-operation.ts'
