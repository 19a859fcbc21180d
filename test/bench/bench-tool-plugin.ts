/** A plugin for the measured gateway: adds a tool that costs almost nothing. */
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
