/** A plugin for the home of the measured gateway: a tool that costs nothing, made once. */
import type { Plugin } from '../../core/plugin.ts'

export default {
	name: 'bench',
	start(ctx) {
		ctx.primitive({
			name: 'bench.echo',
			description: 'Repeats a text.',
			parameters: ctx.joi.object({ text: ctx.joi.string().required() }),
			run: ({ text }) => text,
		})
	},
} satisfies Plugin
