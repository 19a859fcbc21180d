/**
 * `node:http`, for code that needs more of it than types. An `import` of it asks for each of its names, and one of them, its
 * WebSocket, then loads all of undici: 2 MiB and a twentieth of the start, for an idle gateway that fetches nothing.
 */
export const http = process.getBuiltinModule('node:http')
