import { definePlugin } from '../../core/plugin.ts'
import { modelsOf } from './models.ts'
import type { ModelSettings } from './models.ts'

/** Which model answers for which agent. Its settings are the sections `providers`, `default_provider` and `fallback`. */
export default definePlugin<ModelSettings>({
	name: 'models',
	config: (joi) =>
		joi.object<ModelSettings>({
			// The configuration has checked what stands in them.
			providers: joi.object().pattern(joi.string(), joi.object()).required(),
			default_provider: joi.string().required(),
			fallback: joi.array().items(joi.string()).required(),
		}),
	start: (ctx) => modelsOf(ctx),
})
