import { definePlugin } from '../../core/plugin.ts'
import events from './events.ts'
import { modelsOf } from './models.ts'
import type { ModelSettings } from './contract.ts'
import { routes } from './routes.ts'

/** Selects the models of an agent. Its settings are the sections `providers`, `default_provider` and `fallback`. */
export default definePlugin<ModelSettings>({
	name: 'models',
	needs: ['auth'],
	events,
	start: (ctx) => modelsOf(ctx),
	http: (server, ctx) => routes(server, ctx),
})
