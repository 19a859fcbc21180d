import { definePlugin } from '../../core/plugin.ts'

/** Agents as models of an OpenAI-compatible API. */
export default definePlugin({
	name: 'openai-api',
	needs: ['auth'],
})
