/**
 * `node:http`, for code that needs more than its types. An `import` reads each of its exports, and one of them, WebSocket, then
 * loads all of undici: 2 MiB and a twentieth of the start, for an idle gateway that fetches nothing.
 */
export const http = process.getBuiltinModule('node:http')
