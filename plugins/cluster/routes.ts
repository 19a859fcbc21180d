import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { scoped } from '../shared/scopes.ts'
import type { Context } from '../../core/plugin.ts'

const cluster = Joi.object({
	in_cluster: Joi.boolean().required().description('Whether the data is in a cluster (`store.url`).'),
	data_format: Joi.number()
		.integer()
		.required()
		.description('The format in which the data is written; see `store.format`.'),
	servers: Joi.array().items(Joi.string()).required().description('`host:port` of each known server of the cluster.'),
	leader: Joi.string()
		.allow(null)
		.required()
		.description('The NATS server that leads the stream of records and accepts its writes; null during an election.'),
	gateways: Joi.array()
		.items(
			Joi.object({
				name: Joi.string().required().description('Its machine and process.'),
				version: Joi.string().required(),
				format: Joi.number().integer().required().description('The newest format that it reads.'),
				works: Joi.boolean()
					.required()
					.description('Whether it holds the lease and serves all requests; the others wait for it.'),
				threads: Joi.number()
					.integer()
					.required()
					.description(
						'Worker threads in which runs execute: for the working gateway its own, none before its first run; for another one those that it lends.',
					),
				runs: Joi.number().integer().required().description('Runs that execute in these threads.'),
			}),
		)
		.required()
		.description('Gateways that answer at this moment, the working one first.'),
})
	.id('Cluster')
	.example({
		in_cluster: true,
		data_format: 2,
		servers: ['10.0.0.11:4222', '10.0.0.12:4222', '10.0.0.13:4222'],
		leader: 'nats-1',
		gateways: [
			{ name: 'gateway-1 (process 812)', version: '0.2.0', format: 2, works: true, threads: 4, runs: 21 },
			{ name: 'gateway-2 (process 799)', version: '0.2.0', format: 2, works: false, threads: 4, runs: 20 },
		],
	})

/** `GET /v1/cluster`, which also answers without a cluster. */
export function routes(server: Server, { gateway }: Context): void {
	server.route({
		method: 'GET',
		path: '/v1/cluster',
		options: {
			id: 'getCluster',
			description: 'The gateways and servers of a cluster',
			notes:
				'On a cluster this asks all gateways, which takes almost a second. Without a cluster it returns this gateway only.',
			tags: ['api', 'gateway'],
			auth: scoped('agents:read'),
			response: { status: { 200: cluster } },
		},
		handler: async () => {
			const found = gateway.storeCluster()
			return {
				in_cluster: found !== null,
				data_format: gateway.dataFormat(),
				servers: found?.servers ?? [],
				leader: found?.leader ?? null,
				gateways: await gateway.gateways(),
			}
		},
	})
}
