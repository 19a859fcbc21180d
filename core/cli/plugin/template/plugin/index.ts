/**
 * The plugin new-plugin. docs/writing-plugins.md of the gateway shows what else a plugin can do.
 *
 *     svc plugins test     runs the tests of this folder
 *     svc plugins check    finds problems before the plugin is switched on
 */
import type { Plugin } from 'svc-gateway'

interface Settings {
	greeting: string
}

export default {
	name: 'new-plugin',
	version: '0.1.0',
	contract: '0.2',
	config: (joi) =>
		joi.object({
			greeting: joi.string().max(100).default('Hello').description('The text before the name.'),
		}),

	start(ctx) {
		ctx.primitive({
			name: 'new_plugin.greet',
			description: 'Greets somebody by name. Use it when the user asks for a greeting.',
			parameters: {
				type: 'object',
				properties: { name: { type: 'string', description: 'The person to greet.' } },
				required: ['name'],
			},
			run({ name }) {
				if (typeof name !== 'string' || name === '') throw new Error('name must be text that is not empty')
				return `${ctx.config.greeting}, ${name}!`
			},
		})
	},
} satisfies Plugin<Settings>
