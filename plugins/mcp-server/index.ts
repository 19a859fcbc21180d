import { definePlugin } from '../../core/plugin.ts'

/** The gateway as a server of the Model Context Protocol. */
export default definePlugin({
	name: 'mcp-server',
	needs: ['auth'],
})
