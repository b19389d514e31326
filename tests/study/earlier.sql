BEGIN TRANSACTION;
CREATE TABLE attributes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, cost REAL NOT NULL, head INTEGER NOT NULL,
    low REAL, high REAL
);
INSERT INTO "attributes" VALUES(0,'age',0.0,0,NULL,NULL);
INSERT INTO "attributes" VALUES(1,'ecg',10.1,1,NULL,NULL);
INSERT INTO "attributes" VALUES(2,'iron',20.3,2,NULL,NULL);
INSERT INTO "attributes" VALUES(3,'zinc',0.0,2,NULL,NULL);
INSERT INTO "attributes" VALUES(4,'crp',4.0,4,NULL,NULL);
CREATE TABLE cells (
    example INTEGER NOT NULL REFERENCES examples, attribute INTEGER NOT NULL REFERENCES attributes,
    state TEXT NOT NULL CHECK (state IN ('on order', 'known', 'unavailable')),
    value REAL CHECK ((value IS NOT NULL) = (state = 'known')),
    order_number INTEGER REFERENCES orders, paid INTEGER NOT NULL CHECK (state = 'known' OR NOT paid),
    PRIMARY KEY (example, attribute)
) WITHOUT ROWID;
INSERT INTO "cells" VALUES(0,0,'known',31.0,NULL,0);
INSERT INTO "cells" VALUES(0,1,'known',99.5,1,1);
INSERT INTO "cells" VALUES(0,2,'unavailable',NULL,1,0);
INSERT INTO "cells" VALUES(0,3,'unavailable',NULL,1,0);
INSERT INTO "cells" VALUES(0,4,'known',2.0,3,1);
INSERT INTO "cells" VALUES(1,0,'known',44.0,NULL,0);
INSERT INTO "cells" VALUES(1,1,'on order',NULL,3,0);
INSERT INTO "cells" VALUES(1,2,'known',5.0,1,1);
INSERT INTO "cells" VALUES(1,3,'known',7.25,1,1);
INSERT INTO "cells" VALUES(1,4,'known',8.0,1,1);
INSERT INTO "cells" VALUES(2,0,'known',3.5,NULL,1);
INSERT INTO "cells" VALUES(2,1,'known',9.5,1,1);
INSERT INTO "cells" VALUES(2,2,'known',2.0,3,1);
INSERT INTO "cells" VALUES(2,3,'known',6.25,2,1);
INSERT INTO "cells" VALUES(2,4,'known',11.0,1,1);
INSERT INTO "cells" VALUES(3,0,'known',50.0,NULL,0);
INSERT INTO "cells" VALUES(3,2,'known',12.5,1,1);
INSERT INTO "cells" VALUES(3,3,'known',14.0,1,1);
INSERT INTO "cells" VALUES(3,4,'known',2.0,3,1);
INSERT INTO "cells" VALUES(4,0,'known',61.0,NULL,0);
INSERT INTO "cells" VALUES(4,2,'on order',NULL,3,0);
INSERT INTO "cells" VALUES(4,3,'known',5.5,NULL,1);
INSERT INTO "cells" VALUES(4,4,'on order',NULL,3,0);
INSERT INTO "cells" VALUES(6,0,'known',39.0,NULL,0);
INSERT INTO "cells" VALUES(7,0,'known',47.0,NULL,0);
INSERT INTO "cells" VALUES(7,4,'known',4.5,NULL,0);
INSERT INTO "cells" VALUES(8,0,'known',2.0,3,1);
INSERT INTO "cells" VALUES(8,4,'known',1.0,NULL,0);
CREATE TABLE estimates (state INTEGER PRIMARY KEY, spent REAL NOT NULL, content TEXT NOT NULL);
CREATE TABLE examples (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, target);
INSERT INTO "examples" VALUES(0,'p1',1.0);
INSERT INTO "examples" VALUES(1,'p2',2.0);
INSERT INTO "examples" VALUES(2,'p3',3.0);
INSERT INTO "examples" VALUES(3,'p4',1.5);
INSERT INTO "examples" VALUES(4,'p5',2.5);
INSERT INTO "examples" VALUES(5,'p6',2.0);
INSERT INTO "examples" VALUES(6,'p7',1.0);
INSERT INTO "examples" VALUES(7,'p8',3.0);
INSERT INTO "examples" VALUES(8,'p9',2.2);
CREATE TABLE facts (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "facts" VALUES('algo','aemr');
INSERT INTO "facts" VALUES('id','patient');
INSERT INTO "facts" VALUES('origin','18eff5c326cf200f69a268aa2597e37cec19e856b20dfb57ccaf6af4fe1cb84e');
INSERT INTO "facts" VALUES('seed','0');
INSERT INTO "facts" VALUES('target','outcome');
INSERT INTO "facts" VALUES('unit','EUR');
CREATE TABLE lines (
    order_number INTEGER NOT NULL REFERENCES orders, place INTEGER NOT NULL,
    example INTEGER NOT NULL REFERENCES examples, attribute INTEGER NOT NULL REFERENCES attributes, cost REAL NOT NULL,
    PRIMARY KEY (order_number, place)
) WITHOUT ROWID;
INSERT INTO "lines" VALUES(1,0,0,1,10.1);
INSERT INTO "lines" VALUES(1,1,0,2,20.3);
INSERT INTO "lines" VALUES(1,2,0,3,0.0);
INSERT INTO "lines" VALUES(1,3,1,2,20.3);
INSERT INTO "lines" VALUES(1,4,1,3,0.0);
INSERT INTO "lines" VALUES(1,5,1,4,4.0);
INSERT INTO "lines" VALUES(1,6,2,1,10.1);
INSERT INTO "lines" VALUES(1,7,2,4,4.0);
INSERT INTO "lines" VALUES(1,8,3,2,20.3);
INSERT INTO "lines" VALUES(1,9,3,3,0.0);
INSERT INTO "lines" VALUES(1,10,2,0,0.0);
INSERT INTO "lines" VALUES(2,0,0,4,4.0);
INSERT INTO "lines" VALUES(2,1,1,1,10.1);
INSERT INTO "lines" VALUES(2,2,2,2,20.3);
INSERT INTO "lines" VALUES(2,3,2,3,0.0);
INSERT INTO "lines" VALUES(2,4,3,1,10.1);
INSERT INTO "lines" VALUES(2,5,3,4,4.0);
INSERT INTO "lines" VALUES(2,6,4,4,4.0);
INSERT INTO "lines" VALUES(2,7,5,4,4.0);
INSERT INTO "lines" VALUES(2,8,5,0,0.0);
INSERT INTO "lines" VALUES(3,0,2,2,0.0);
INSERT INTO "lines" VALUES(3,1,4,2,0.0);
INSERT INTO "lines" VALUES(3,2,0,4,4.0);
INSERT INTO "lines" VALUES(3,3,1,1,10.1);
INSERT INTO "lines" VALUES(3,4,3,4,4.0);
INSERT INTO "lines" VALUES(3,5,4,4,4.0);
INSERT INTO "lines" VALUES(3,6,8,0,0.0);
CREATE TABLE log (
    number INTEGER PRIMARY KEY, event TEXT NOT NULL, example INTEGER, attribute INTEGER, order_number INTEGER, old, new
);
INSERT INTO "log" VALUES(1,'ask',NULL,NULL,1,NULL,NULL);
INSERT INTO "log" VALUES(2,'tell',0,1,1,NULL,0.5);
INSERT INTO "log" VALUES(3,'tell',0,2,1,NULL,2.0);
INSERT INTO "log" VALUES(4,'tell',0,3,1,NULL,'unavailable');
INSERT INTO "log" VALUES(5,'tell',1,2,1,NULL,5.0);
INSERT INTO "log" VALUES(6,'tell',1,3,1,NULL,6.5);
INSERT INTO "log" VALUES(7,'tell',1,4,1,NULL,8.0);
INSERT INTO "log" VALUES(8,'tell',2,1,1,NULL,9.5);
INSERT INTO "log" VALUES(9,'tell',2,4,1,NULL,11.0);
INSERT INTO "log" VALUES(10,'tell',3,2,1,NULL,12.5);
INSERT INTO "log" VALUES(11,'tell',3,3,1,NULL,14.0);
INSERT INTO "log" VALUES(12,'tell',0,1,1,0.5,99.5);
INSERT INTO "log" VALUES(13,'tell',0,2,1,2.0,'unavailable');
INSERT INTO "log" VALUES(14,'tell',1,3,1,6.5,'unavailable');
INSERT INTO "log" VALUES(15,'tell',1,3,1,'unavailable',7.25);
INSERT INTO "log" VALUES(16,'ask',NULL,NULL,2,NULL,NULL);
INSERT INTO "log" VALUES(17,'cancel',NULL,NULL,1,NULL,NULL);
INSERT INTO "log" VALUES(18,'tell',2,0,NULL,NULL,3.5);
INSERT INTO "log" VALUES(19,'tell',7,4,NULL,NULL,4.5);
INSERT INTO "log" VALUES(20,'tell',4,3,NULL,NULL,5.5);
INSERT INTO "log" VALUES(21,'example',8,NULL,NULL,NULL,NULL);
INSERT INTO "log" VALUES(22,'target',8,NULL,NULL,NULL,2.2);
INSERT INTO "log" VALUES(23,'beforehand',8,4,NULL,NULL,1.0);
INSERT INTO "log" VALUES(24,'tell',2,3,2,NULL,6.25);
INSERT INTO "log" VALUES(25,'cancel',NULL,NULL,2,NULL,NULL);
INSERT INTO "log" VALUES(26,'ask',NULL,NULL,3,NULL,NULL);
INSERT INTO "log" VALUES(27,'tell',2,2,3,NULL,2.0);
INSERT INTO "log" VALUES(28,'tell',0,4,3,NULL,2.0);
INSERT INTO "log" VALUES(29,'tell',3,4,3,NULL,2.0);
INSERT INTO "log" VALUES(30,'tell',8,0,3,NULL,2.0);
CREATE TABLE orders (
    number INTEGER PRIMARY KEY, spend REAL NOT NULL, per_example INTEGER, seed INTEGER NOT NULL, reason TEXT NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0
);
INSERT INTO "orders" VALUES(1,90.0,3,0,'up to 2 of 3 attributes each of 4 examples, as complete rows of fewer examples would show little of how attributes are related while so few values are known',1);
INSERT INTO "orders" VALUES(2,60.0,NULL,0,'complete rows, of 6 examples, as a few attributes of each of more examples are not expected to be worth clearly more',1);
INSERT INTO "orders" VALUES(3,45.0,NULL,0,'complete rows, of 6 examples, as a few attributes of each of more examples are not expected to be worth clearly more',0);
COMMIT;
