import type { jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js'

/** Accepts everything. The MCP SDK's own validator would compile the schemas of others to code, and cache it. */
export const noValidator: jsonSchemaValidator = {
	getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
}
