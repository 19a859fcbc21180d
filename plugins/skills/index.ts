import { Fault } from '../../core/errors.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { SkillSettings } from './contract.ts'
import { openHosts } from './hosts.ts'
import { openLibrary } from './library.ts'
import { routes } from './routes.ts'
import { skillsOf } from './skills.ts'
import { skillTools } from './tools.ts'
import { openUnderWay } from './under-way.ts'

/** Less than the gateway waits for a release. */
const FINISH_MS = 8_000

/** Skills: Markdown documents that an agent uses once an operator approved them. */
export default definePlugin<SkillSettings>({
	name: 'skills',
	needs: ['auth', 'agents'],
	config: (joi) =>
		joi.object<SkillSettings>({
			allow_private_urls: joi.boolean().required(),
			processes: joi.number().required(),
			max_waiting: joi.number().required(),
			memory_mib: joi.number().required(),
			process_mib: joi.number().required(),
			cpu_s: joi.number().required(),
			wall_time_s: joi.number().required(),
			max_per_agent: joi.number().required(),
		}),
	start(ctx) {
		const hosts = ctx.own(openHosts({ settings: ctx.config, log: ctx.log }), 'skill hosts')
		const underWay = openUnderWay()
		// Another instance takes the calls that come; those under way may end in this one.
		const cutOff = new Fault('unavailable', 'the skill was cut off by a change of the configuration; call it again')
		const finish = () => underWay.finish(ctx.gateway.state() === 'draining' ? 0 : FINISH_MS, cutOff)
		ctx.defer(finish, 'calls of skills')
		const tools = skillTools(ctx, openLibrary(ctx), hosts, underWay)
		ctx.tools((agent) => tools.provide(agent))
		ctx.on('agent.deleted', ({ payload }) => tools.forget(String(payload.uid)))
		return skillsOf(ctx, hosts, underWay)
	},
	http: (server, ctx) => routes(server, ctx),
})
