import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { BackupInfo } from '../../core/backup/list.ts'
import type { Context } from '../../core/plugin.ts'
import type { Backups, BackupSettings } from './contract.ts'

const id = Joi.string()
	.pattern(/^\d{8}T\d{9}Z$/)
	.message('{#label} must be the id of a backup, such as 20300131T120000123Z')
	.description('The UTC time at which its creation began.')
	.example('20300131T120000123Z')
const file = Joi.string()
	.required()
	.description("Path on the gateway's machine.")
	.example('/home/ada/.svc/backups/svc-backup-20300131T120000123Z.tar.gz')
const instant = Joi.string().isoDate().example('2030-01-31T12:00:00.123Z')

const backup = Joi.object({
	id: id.required(),
	file,
	bytes: Joi.number().integer().required().description('Size of the file.').example(481_203),
	created_at: instant.required(),
	trigger: Joi.valid('request', 'schedule').required().example('request'),
	gateway_version: Joi.string().required().example('0.1.0'),
	records: Joi.number().integer().required().description('Number of records of the store.').example(1204),
	log_records: Joi.number()
		.integer()
		.required()
		.description('Number of records of the event log; each contains the events of one write.')
		.example(5210),
	head: Joi.string().required().description('Cursor of the newest event.').example('9031'),
	includes_key: Joi.boolean()
		.required()
		.description("Whether it contains the vault's key: then anyone who has the file can decrypt its secrets.")
		.example(true),
	left_out: Joi.array()
		.items(Joi.string())
		.required()
		.description('Files of the home that the backup does not contain, and why.')
		.example([]),
}).id('Backup')

const backups = Joi.object({
	backups: Joi.array().items(backup).required(),
	unreadable: Joi.array()
		.items(
			Joi.object({
				id: id.required(),
				file,
				message: Joi.string().required().example('it does not have the header of a backup'),
			}),
		)
		.required()
		.example([])
		.description('Files that have the name of a backup but are not backups.'),
	folder: Joi.string().required().example('/home/ada/.svc/backups'),
	next_at: instant.allow(null).required().description('When the schedule takes the next one.'),
}).id('Backups')

/** Without `auth`: only callers with the scope `*`, since a backup contains everything. */
export function routes(server: Server, ctx: Context<BackupSettings>, service: Backups): void {
	server.route({
		method: 'POST',
		path: '/v1/backups',
		options: {
			id: 'createBackup',
			description: 'Take a backup',
			notes:
				'Answers once the backup is complete, on the disk and verified; it continues if the caller disconnects. It contains everything that was acknowledged before the request. Only one backup can be in progress.',
			tags: ['api', 'backups'],
			plugins: { openapi: { errors: [409] } },
			validate: { payload: Joi.object({}).allow(null).prefs({ convert: false }).example({}) },
			response: { status: { 201: backup } },
		},
		handler: async (_request, h) => h.response(view(await service.create('request'))).code(201),
	})
	server.route({
		method: 'GET',
		path: '/v1/backups',
		options: {
			id: 'listBackups',
			description: 'List backups, oldest first',
			notes: 'Reads only their headers; `svc backup verify` reads a whole backup.',
			tags: ['api', 'backups'],
			plugins: { auth: { changes: false } },
			response: { status: { 200: backups } },
		},
		handler: async () => {
			const { folder, next } = service
			const listed = await service.list()
			return { backups: listed.backups.map(view), unreadable: listed.unreadable, folder, next_at: next() }
		},
	})
	server.route<{ Params: { id: string } }>({
		method: 'DELETE',
		path: '/v1/backups/{id}',
		options: {
			id: 'removeBackup',
			description: 'Remove a backup',
			tags: ['api', 'backups'],
			validate: { params: Joi.object({ id: id.required() }) },
		},
		handler: async (request, h) => {
			await service.remove(request.params.id)
			return h.response().code(204)
		},
	})
}

function view(made: BackupInfo): Omit<BackupInfo, 'origin'> {
	const { origin: _origin, ...shown } = made
	return shown
}
