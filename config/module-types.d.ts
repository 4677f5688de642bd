export interface Host{readonly workspace:string;readonly signal:AbortSignal;log(...said:readonly[text:string]|readonly[level:string,text:string]):void;progress(progress:Progress):void;exec(program:string,args?:readonly string[],options?:ExecOptions):Promise<ExecResult>;sqlite(path:string,options?:SqliteOptions):Promise<Database>;fetch(url:string|URL,init?:RequestInit):Promise<Response>;env(name:string):string|undefined;sample(request:SampleRequest):Promise<SampleResult>}
export interface SampleRequest{readonly messages:readonly SampleMessage[];readonly systemPrompt?:string;readonly maxTokens:number;readonly temperature?:number;readonly stopSequences?:readonly string[];readonly modelPreferences?:{readonly hints?:readonly{readonly name?:string}[]};readonly allowedToolPatterns?:readonly string[];readonly tools?:readonly{readonly name:string;readonly description?:string;readonly inputSchema:object}[];readonly toolChoice?:{readonly mode:"auto"|"required"|"none"}}
export interface SampleMessage{readonly role:"user"|"assistant";readonly content:string|SampleBlock|readonly SampleBlock[]}
export interface SampleBlock{readonly type:string;readonly[key:string]:unknown}
export interface SampleResult{readonly role:"assistant";readonly model:string;readonly content:SampleBlock|readonly SampleBlock[];readonly stopReason?:string}
export interface ExecOptions{readonly cwd?:string;readonly stdin?:string|Uint8Array;readonly env?:Readonly<Record<string,string>>;readonly timeoutMs?:number;readonly maxBytes?:number;readonly onOutput?:(output:ExecOutput)=>void}
export interface ExecOutput{readonly stream:"stdout"|"stderr";readonly text:string}
export interface ExecResult{readonly code:number;readonly signal:string|null;readonly stdout:string;readonly stderr:string;readonly omitted:{readonly stdout:number;readonly stderr:number};readonly timedOut:boolean}
export interface SqliteOptions{readonly write?:boolean}
export type SqlValue=null|number|bigint|string|Uint8Array;
export type SqlParameters=readonly SqlValue[]|Readonly<Record<string,SqlValue>>;
export interface SqlRows{readonly columns:readonly string[];readonly rows:readonly(readonly SqlValue[])[];readonly more:boolean}
export interface SqlChanges{readonly changes:number;readonly lastInsertRowid:number|bigint}
export interface Database extends AsyncDisposable{query(sql:string,parameters?:SqlParameters,page?:{readonly limit?:number;readonly offset?:number}):Promise<SqlRows>;execute(sql:string,parameters?:SqlParameters):Promise<SqlChanges>;close():Promise<void>}
export interface ContentBlock{readonly type:string;readonly[key:string]:unknown}
export interface ToolResult{readonly content:readonly ContentBlock[];readonly structuredContent?:unknown;readonly isError?:boolean;readonly[key:string]:unknown}
export interface Progress{readonly progress:number;readonly total?:number;readonly message?:string}
export type Json=null|boolean|number|string|readonly Json[]|JsonObject;
export interface JsonObject{readonly[key:string]:Json}
export interface Permissions{readonly read:readonly string[];readonly write:readonly string[];readonly net:readonly string[];readonly run:readonly string[];readonly env:readonly string[]}
export interface Meta{readonly name:string;readonly version?:string;readonly description?:string;readonly permissions?:Partial<Permissions>;readonly tools:Readonly<Record<string,ToolMeta>>}
export interface ToolMeta{readonly title?:string;readonly description?:string;readonly inputSchema?:object;readonly outputSchema?:object;readonly annotations?:object;readonly permissions?:Partial<Permissions>;readonly errors?:Readonly<Record<string,string|object>>;readonly visibility?:"internal"|"external";readonly icons?:readonly object[];readonly execution?:object;readonly _meta?:object}